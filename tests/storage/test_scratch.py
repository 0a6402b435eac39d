"""Scratch on a real HTTP Kubernetes API: empty at each start, gone with each run, and nothing that keeps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounts.errors import Conflict, Invalid, Refusal
from clusters.api import Api
from devcluster.testing.waiting import until
from quotas import admission
from quotas.models import Claim
from storage import changes, copies
from storage.files import sessions
from storage.models import Kind, Volume
from storage.mounts.mounting import MountWish
from tests.cast import Cast
from tests.shared.driving import claim_of, drive, in_phase
from tests.shared.keeping import created
from workloads.sizes.sizing import SizeAsked
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Workspace
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def scratch(house: Cast, api: Api) -> Volume:
    return created(house, "tmp", Kind.SCRATCH)


def launched(house: Cast, name: str, volume: Volume) -> Workspace:
    wish = MountWish(volume=volume.pk, path="/scratch", read_only=False)
    size = SizeAsked(flavor="a100-1")
    spec = LaunchSpec(tenant=house.demo.slug, name=name, image="jupyter", size=size, volumes=[wish])
    return launch(house.alice, spec)


def claims(house: Cast, api: Api, volume: Volume) -> list[dict[str, Any]]:
    found = api.list("PersistentVolumeClaim", namespace=house.demo.namespace)
    return [body for body in found if body["metadata"]["name"].endswith(volume.object_name)]


@pytest.mark.slow
def test_a_run_gets_an_empty_one_that_goes_with_it(house: Cast, api: Api, scratch: Volume) -> None:
    run = drive(launched(house, "one", scratch), in_phase("ready"))
    [claim] = claims(house, api, scratch)
    assert claim["spec"]["resources"]["requests"]["storage"] == "128Mi"
    [volume] = [
        body
        for body in api.list("PersistentVolume")
        if body["metadata"]["name"] == claim["spec"]["volumeName"]
    ]
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    other = launched(house, "other", scratch)
    admission.admit(other.pool_id)
    waiting = claim_of(other)
    assert (waiting.state, waiting.reason_code) == (Claim.State.WAITING, "volume_in_use")
    changes.change(house.alice, scratch, {"size_mib": 64})
    lifecycle.stop(house.alice, run)
    drive(run, in_phase("stopped"))
    until(lambda: not claims(house, api, scratch))
    drive(other, in_phase("ready"))
    [claim] = claims(house, api, scratch)
    assert claim["spec"]["resources"]["requests"]["storage"] == "64Mi"


def test_it_is_deleted_at_once_unless_a_run_has_it(house: Cast, scratch: Volume) -> None:
    run = drive(launched(house, "one", scratch), in_phase("ready"))
    with pytest.raises(Conflict):
        changes.delete(house.alice, scratch)
    lifecycle.stop(house.alice, run)
    drive(run, in_phase("stopped"))
    assert changes.delete(house.alice, scratch)
    row = Volume.objects.get(pk=scratch.pk)
    assert (row.phase, row.deleted_at is not None) == ("deleted", True)


def test_nothing_keeps_or_shares_it(house: Cast, scratch: Volume) -> None:
    asked: list[Callable[[], Any]] = [
        lambda: copies.snapshot(house.alice, scratch),
        lambda: copies.clone(house.alice, scratch, "copy"),
        lambda: sessions.start(house.alice, scratch),
        lambda: changes.change(house.alice, scratch, {"shared": "read"}),
        lambda: created(house, "shared", Kind.SCRATCH, shared="read"),
    ]
    for use_case in asked:
        with pytest.raises(Refusal) as refusal:
            use_case()
        assert refusal.value.code == "is_scratch"


def test_it_is_mounted_to_write(house: Cast, scratch: Volume) -> None:
    wish = MountWish(volume=scratch.pk, path="/scratch", read_only=True)
    size = SizeAsked(flavor="a100-1")
    with pytest.raises(Invalid) as refusal:
        launch(
            house.alice,
            LaunchSpec(tenant=house.demo.slug, name="one", image="jupyter", size=size, volumes=[wish]),
        )
    assert list(refusal.value.fields) == ["volumes"]
