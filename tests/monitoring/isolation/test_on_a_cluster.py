"""Proofs on a trial cluster with real pods and the rights of Berth's own account: with enforcement, and without."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from accounts.errors import Conflict
from accounts.models import AuditEntry
from clusters.connections import api_for
from clusters.doctor import Check, examine
from clusters.models import Installation
from devcluster.testing.cluster import DevCluster, running
from devcluster.testing.waiting import until
from monitoring import enqueue
from monitoring.drift.survey import survey
from monitoring.isolation import manifests, steps
from monitoring.isolation.proof import Proofs
from monitoring.models import IsolationProof
from portal.up import networks
from tests.cast import Cast
from tests.own_rights import OwnRights, bind

pytestmark = pytest.mark.django_db
enforces = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(map(shutil.which, ("slirp4netns", "nft"))),
        reason="rules for pods need root here, slirp4netns and nft",
    ),
]
REFERENCE = "docker.io/local/venv:1"
PROCESSES = ("--pods", "process", "--image", f"{REFERENCE}={sys.prefix}")


class WithoutNft(DevCluster):
    """Trial cluster as on a machine without nftables: it stores policies and does not enforce them."""

    program = (
        "-c",
        (
            "from devcluster.kubelet.network import podnetwork as p; from devcluster.__main__ import main; "
            "p._NFT = 'no-nft'; main()"
        ),
    )


@pytest.fixture
def house(cast: Cast, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cast]:
    """Cast whose cluster has real pods, with the trial's networks. The parameter is the kind of devcluster."""
    for cluster in running(tmp_path, *PROCESSES, kind=request.param):
        rights = OwnRights(cluster.kubeconfig, tmp_path)
        cast.cluster.kubeconfig_path = str(rights.kubeconfig)
        for name, cidrs in networks.TRIAL.items():
            setattr(cast.cluster, name, cidrs)
        bind(cast.cluster)
        cast.cluster.save()
        cast.image.reference = REFERENCE
        cast.image.save()
        yield cast


def isolation(house: Cast) -> list[tuple[str, str]]:
    found = [finding for finding in examine(house.cluster) if finding.check == Check.ISOLATION]
    return [(finding.level.value, finding.message) for finding in found]


def left(house: Cast) -> list[Any]:
    """Return the Jobs and pods of proofs that are still there."""
    api = api_for(house.cluster)
    spaces = manifests.namespaces(Installation.current_id())
    bodies = [body for space in spaces for kind in ("Job", "Pod") for body in api.list(kind, namespace=space)]
    return [body for body in bodies if not body["metadata"].get("deletionTimestamp")]


@pytest.mark.parametrize("house", [pytest.param(DevCluster, marks=enforces)], indirect=True)
def test_tenants_are_proven_apart_where_policies_are_enforced(
    house: Cast, capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(SystemExit):  # the trial lacks other things
        call_command("doctor", "--cluster", house.cluster.slug, "--prove-isolation")
    row = IsolationProof.objects.get()
    assert (row.outcome, row.code) == ("apart", "proof_apart"), row.data
    assert row.before["reached"]["tenant:8888"] and row.before["reached"]["tenant:2222"]  # the control
    assert not any(row.after["reached"].values())
    assert row.cleared_at and row.ended_at
    assert any(level == "ok" and "Proven on" in text for level, text in isolation(house))
    assert "Proven on" in capsys.readouterr().out
    until(lambda: not left(house))
    assert survey(house.cluster, api_for(house.cluster)).found == []  # its namespaces are no drift
    assert AuditEntry.objects.filter(action="cluster.prove_isolation").exists()


@pytest.mark.parametrize("house", [pytest.param(WithoutNft, marks=enforces)], indirect=True)
def test_doctor_says_that_policies_are_not_enforced(house: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "SETTLED_WITHIN", timedelta(seconds=3))
    Proofs().wait(steps.start(house.admin, house.cluster))
    row = IsolationProof.objects.get()
    assert (row.outcome, row.code) == ("reached", "proof_tenant_reached")
    assert row.data["reached"]["tenant"] == ["2222", "8888"]
    (told,) = [text for level, text in isolation(house) if level == "fail"]
    assert "does not enforce" in told
    until(lambda: not left(house))


# --- Without pods that run


def looked(proof: UUID) -> bool:
    steps.look(proof)
    return True


@pytest.fixture
def played(cast: Cast, own_rights: Path) -> Cast:
    cast.cluster.kubeconfig_path = str(own_rights)
    bind(cast.cluster)
    cast.cluster.save()
    return cast


def test_pods_that_say_nothing_prove_nothing_and_are_removed(played: Cast) -> None:
    proof = steps.start(played.admin, played.cluster)
    with pytest.raises(Conflict, match="under way"):
        steps.start(None, played.cluster)
    until(lambda: looked(proof) and left(played))
    IsolationProof.objects.update(asked_at=timezone.now() - steps.GIVEN_UP - timedelta(seconds=1))
    until(lambda: looked(proof) and IsolationProof.objects.get().cleared_at)
    row = IsolationProof.objects.get()
    assert (row.outcome, row.code) == ("unclear", "proof_too_long")
    until(lambda: not left(played))
    assert [level for level, text in isolation(played) if "nothing was proven" in text] == ["warn"]


def test_the_next_proof_removes_what_a_killed_one_left(played: Cast) -> None:
    first = steps.start(None, played.cluster)
    until(lambda: looked(first) and left(played))
    IsolationProof.objects.all().delete()  # as after a restore of the database
    second = steps.start(None, played.cluster)
    steps.look(second)
    names = {body["metadata"]["name"] for body in left(played) if body["kind"] == "Job"}
    assert names == {f"isolation-proof-{second}"}
    IsolationProof.objects.update(asked_at=timezone.now() - steps.GIVEN_UP - timedelta(seconds=1))
    Proofs().wait(second)


def test_a_tick_carries_on_what_a_killed_worker_left(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(enqueue, "prove_isolation", asked.append)
    proof = steps.start(None, cast.cluster)
    steps.on_tick()
    assert asked == [proof]  # its task is on its way
    IsolationProof.objects.update(queued_at=timezone.now() - steps.LOST_AFTER * 2)
    steps.on_tick()
    assert asked == [proof, proof]


def test_a_namespace_of_somebody_else_is_left_alone(played: Cast) -> None:
    api = api_for(played.cluster)
    name = min(manifests.namespaces(Installation.current_id()))
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    Proofs().wait(steps.start(None, played.cluster))
    row = IsolationProof.objects.get()
    assert (row.outcome, row.code) == ("unclear", "proof_refused")
    assert name in row.data["message"]


def test_without_an_image_a_proof_is_refused(cast: Cast) -> None:
    cast.image.is_active = False
    cast.image.save()
    with pytest.raises(Conflict, match="no image"):
        steps.start(None, cast.cluster)


def test_an_admin_queues_a_proof_on_the_page_of_doctor(played: Cast, client: Client) -> None:
    client.force_login(played.admin.user)
    page = f"/admin/clusters/cluster/{played.cluster.pk}"
    assert "Nothing has proven yet" in client.get(f"{page}/change/").content.decode()
    assert client.get(f"{page}/prove/").status_code == 405
    assert client.post(f"{page}/prove/").status_code == 302
    assert IsolationProof.objects.get().asked_by == played.admin.user
    told = client.get(f"{page}/doctor/").content.decode()
    assert "is under way" in told and "Prove the isolation" in told
    assert "is under way in this cluster" in client.post(f"{page}/prove/", follow=True).content.decode()
    client.force_login(played.alice.user)
    assert client.post(f"{page}/prove/").status_code in (302, 403)
    assert IsolationProof.objects.count() == 1
