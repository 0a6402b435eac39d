"""Files sessions hold their volume as runs do, on a real HTTP Kubernetes API: nobody writes beside anyone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.access import Actor
from accounts.errors import Conflict, NotAllowed, TooMany
from clusters.api import Api
from clusters.labels import FILES
from clusters.models import Installation
from clusters.pods.ends import FINALIZER
from devcluster.testing.waiting import until
from monitoring.drift.survey import survey
from quotas import admission
from storage import changes
from storage.cluster.look import look
from storage.files import look as files_look
from storage.files import sessions
from storage.files.look import IDLE
from storage.models import FilesSession, Volume
from storage.mounts.leasing import Leases, uses_of
from storage.mounts.mounting import MountWish
from tests.cast import Cast
from tests.shared.driving import claim_of, drive
from tests.shared.driving import in_phase as run_in_phase
from tests.shared.keeping import created, in_phase, keep
from tests.shared.looking import listed
from workloads.sizes.sizing import SizeAsked
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Workspace
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def dataset(house: Cast) -> Volume:
    return keep(created(house, shared="read"), in_phase("ready"))


def look_at(volume: Volume) -> None:
    row = Volume.objects.select_related("tenant", "cluster", "source__volume__tenant").get(pk=volume.pk)
    look(row, listed(row.cluster, row.tenant.namespace), Installation.current_id())


def session_of(volume: Volume, phase: str) -> FilesSession:
    """Look at the volume until its newest session is as expected."""
    newest = FilesSession.objects.filter(volume=volume).order_by("-created_at")

    def is_so() -> bool:
        look_at(volume)
        found = newest.first()
        return found is not None and found.phase == phase

    until(is_so)
    return newest[0]


def opened(actor: Actor, volume: Volume) -> FilesSession:
    sessions.start(actor, volume)
    return session_of(volume, "ready")


def launched(house: Cast, volume: Volume, name: str = "exp-1", *, read_only: bool = True) -> Workspace:
    size = SizeAsked(flavor="a100-1")
    wish = MountWish(volume=volume.pk, path="/data", read_only=read_only)
    spec = LaunchSpec(tenant=house.demo.slug, name=name, image="jupyter", size=size, volumes=[wish])
    return launch(house.alice, spec)


def refused(kind: type[Exception], code: str, actor: Actor, volume: Volume) -> Any:
    with pytest.raises(kind) as refusal:
        sessions.start(actor, volume)
    assert refusal.value.code == code  # type: ignore[attr-defined]
    return refusal.value


def pods_of(api: Api, house: Cast) -> list[dict[str, Any]]:
    pods = api.list("Pod", namespace=house.demo.namespace)
    return [pod for pod in pods if FILES in (pod["metadata"].get("labels") or {})]


def test_a_session_is_the_writer_alone_and_ends_with_nothing_left(
    house: Cast, dataset: Volume, api: Api
) -> None:
    session = opened(house.alice, dataset)
    assert session.writes and session.host
    (pod,) = pods_of(api, house)
    assert pod["metadata"]["finalizers"] == [FINALIZER]
    assert "nvidia.com/gpu" not in pod["spec"]["containers"][0]["resources"]["limits"]
    assert uses_of([dataset.pk])[dataset.pk].lease["mode"] == "writer"
    found = survey(house.cluster, api).found
    assert not [one for one in found if one.key.namespace == house.demo.namespace]  # it is no drift
    assert sessions.start(house.alice, dataset) == (session, False)
    assert sessions.end(house.alice, dataset)
    session = session_of(dataset, "ended")
    assert not session.token and session.ended_at
    assert not pods_of(api, house)
    for kind in ("Secret", "Service"):
        assert api.get(kind, house.demo.namespace, session.object_name) is None
    assert Leases().held([dataset.pk]) == ()


@pytest.mark.slow
def test_beside_a_reader_files_are_open_to_read_and_beside_a_writer_not_at_all(
    house: Cast, dataset: Volume, api: Api
) -> None:
    run = drive(launched(house, dataset), run_in_phase("ready"))
    assert not opened(house.alice, dataset).writes
    (pod,) = pods_of(api, house)
    assert "--read-only" in pod["spec"]["containers"][0]["command"]
    assert all(mount["readOnly"] for mount in pod["spec"]["containers"][0]["volumeMounts"])
    with pytest.raises(Conflict):
        sessions.ready_one(house.alice, dataset, writes=True)
    sessions.end(house.alice, dataset)
    session_of(dataset, "ended")
    lifecycle.stop(house.alice, run)
    drive(run, run_in_phase("stopped"))
    other = keep(created(house, "other"), in_phase("ready"))
    workspace = launched(house, other, "exp-2", read_only=False)
    drive(workspace, run_in_phase("ready"))
    assert refused(Conflict, "volume_in_use", house.alice, other).fields == {"by": ["exp-2"]}


@pytest.mark.slow
def test_a_run_that_waits_for_the_volume_ends_the_session(house: Cast, dataset: Volume) -> None:
    opened(house.alice, dataset)
    workspace = launched(house, dataset, read_only=False)
    admission.admit(workspace.pool_id)
    claim = claim_of(workspace)
    assert (claim.state, claim.reason_code) == ("waiting", "volume_in_use")
    assert FilesSession.objects.get().phase == "ending"
    refused(Conflict, "files_session_ending", house.alice, dataset)
    session_of(dataset, "ended")
    refused(Conflict, "volume_in_use", house.alice, dataset)  # the request is first
    drive(workspace, run_in_phase("ready"))


def test_the_lease_lasts_until_the_end_of_the_pod_is_proven(
    house: Cast, dataset: Volume, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened(house.alice, dataset)
    sessions.end(house.alice, dataset)
    with monkeypatch.context() as unproven:  # as on a node that is lost
        unproven.setattr(files_look, "end_proven", lambda pod: False)
        for _ in range(3):
            look_at(dataset)
        assert [lease.holder for lease in Leases().held([dataset.pk])] == [session.pk]
        (pod,) = pods_of(api, house)
        assert pod["metadata"]["deletionTimestamp"] and pod["metadata"]["finalizers"] == [FINALIZER]
    session_of(dataset, "ended")
    assert Leases().held([dataset.pk]) == ()


@pytest.mark.slow
def test_a_session_ends_without_use_in_the_bin_and_with_its_pod(
    house: Cast, dataset: Volume, api: Api
) -> None:
    opened(house.alice, dataset)
    FilesSession.objects.update(used_at=timezone.now() - IDLE - timedelta(seconds=1))
    session_of(dataset, "ended")
    again = opened(house.alice, dataset)
    api.delete("Pod", house.demo.namespace, again.object_name)
    session_of(dataset, "ended")
    opened(house.alice, dataset)
    with pytest.raises(Conflict) as refusal:
        changes.delete(house.alice, dataset)
    assert refusal.value.code == "in_use"
    Volume.objects.filter(pk=dataset.pk).update(bin_until=timezone.now() + timedelta(days=1))
    session_of(dataset, "ended")


@pytest.mark.slow
def test_a_home_that_many_nodes_mount_is_open_beside_its_runs(house: Cast, dataset: Volume) -> None:
    drive(launched(house, dataset), run_in_phase("ready"))
    home = Volume.objects.get(kind="home")
    keep(home, in_phase("ready"))
    assert opened(house.alice, home).writes
    assert Leases().held([home.pk]) == ()


def test_who_may_open_files(house: Cast, dataset: Volume) -> None:
    refused(NotAllowed, "not_shared", house.victor, dataset)
    own = keep(created(house, "own"), in_phase("ready"))
    refused(NotAllowed, "not_shared", house.bob, own)
    refused(NotAllowed, "not_shared", house.admin, own)
    assert opened(house.bob, dataset).writes
    with pytest.raises(NotAllowed):  # it is shared to read
        sessions.ready_one(house.bob, dataset, writes=True)
    assert sessions.ready_one(house.alice, dataset, writes=True).writes
    assert sessions.end(house.alice, dataset)  # its owner may


def test_a_person_has_few_sessions_and_a_disk_without_place_none(house: Cast) -> None:
    for number in range(sessions.MOST_OF_A_PERSON):
        sessions.start(house.alice, created(house, f"d{number}"))
    one_more = created(house, "more")
    refused(TooMany, "too_many_files_sessions", house.alice, one_more)
    FilesSession.objects.update(by=house.admin.user)
    refused(Conflict, "not_ready", house.alice, created(house, "disk", kind="disk"))
    house.cluster.files_image = ""
    house.cluster.save()
    refused(Conflict, "no_files_image", house.alice, one_more)


def test_no_pod_starts_without_the_fences_of_its_tenant(house: Cast, dataset: Volume, api: Api) -> None:
    namespace = house.demo.namespace
    api.delete("NetworkPolicy", namespace, "berth")
    api.merge_patch("Namespace", None, namespace, {"metadata": {"annotations": None}})
    opened(house.alice, dataset)
    assert api.get("NetworkPolicy", namespace, "berth") is not None
    sessions.end(house.alice, dataset)
    session_of(dataset, "ended")
    house.cluster.pod_cidrs = []
    house.cluster.save()
    with pytest.raises(Conflict):
        sessions.start(house.alice, dataset)
