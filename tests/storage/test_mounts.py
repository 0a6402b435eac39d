"""Workspaces that mount volumes: on a real HTTP Kubernetes API, with the lease of a writer and of readers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from accounts.access import Actor
from accounts.errors import Conflict, Invalid
from accounts.models import User
from clusters.api import Api
from clusters.models import Node
from quotas import admission
from quotas.estimates import Estimator
from quotas.models import Claim, TenantLimit
from storage import changes
from storage.api.serializers import volumes_json
from storage.models import Mount, Volume
from storage.mounts.mounting import MountWish
from tests.cast import Cast
from tests.shared.concurrency import at_once
from tests.shared.driving import claim_of, drive, in_phase, told
from tests.shared.keeping import created, keep
from tests.shared.keeping import in_phase as volume_in_phase
from workloads.sizes.sizing import Size, SizeAsked
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Workspace
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db(transaction=True)]


def launched(
    house: Cast, name: str, volume: Volume, *, read_only: bool, by: Actor | None = None, path: str = "/data"
) -> Workspace:
    wish = MountWish(volume=volume.pk, path=path, read_only=read_only)
    spec = LaunchSpec(
        tenant=house.demo.slug, name=name, image="jupyter", size=SizeAsked(flavor="a100-1"), volumes=[wish]
    )
    return launch(by or house.alice, spec)


def shared(house: Cast, how: str = "read") -> Volume:
    return keep(created(house, shared=how), volume_in_phase("ready"))


def reason_of(workspace: Workspace) -> tuple[str, str, dict[str, Any]]:
    admission.admit(workspace.pool_id)
    claim = claim_of(workspace)
    return claim.state, claim.reason_code, claim.reason_data


@pytest.mark.slow
def test_two_readers_at_once_and_a_writer_waits_until_the_end_of_both_is_proven(
    house: Cast, api: Api
) -> None:
    volume = shared(house)
    one = drive(launched(house, "one", volume, read_only=True), in_phase("ready"))
    other = drive(launched(house, "other", volume, read_only=True, by=house.bob), in_phase("ready"))
    pod = api.get("Pod", house.demo.namespace, one.object_name)
    assert pod is not None
    mounts = {mount["name"]: mount for mount in pod["spec"]["containers"][0]["volumeMounts"]}
    assert mounts[volume.object_name] == {
        "name": volume.object_name, "mountPath": "/data", "readOnly": True
    }  # fmt: skip

    writer = launched(house, "writer", volume, read_only=False)
    state, code, data = reason_of(writer)
    assert (state, code, data) == ("waiting", "volume_in_use", {"volume": "data", "by": ["one", "other"]})
    assert claim_of(writer).node == ""
    looks = Estimator(without=writer.run)
    size = Size.of(writer)
    assert not looks.starts_now(size.asked_by(writer.tenant, writer.owner, None, writer.pk))
    assert looks.starts_now(size.asked_by(writer.tenant, writer.owner, None, None))
    [shown] = volumes_json([volume])
    assert shown["lease"] == {"mode": "readers", "holders": ["one", "other"], "waiting": ["writer"]}
    assert [mount["path"] for mount in shown["mounts"]] == ["/data", "/data"]
    with pytest.raises(Conflict) as refusal:
        changes.delete(house.alice, volume)
    assert refusal.value.code == "in_use"

    lifecycle.stop(house.alice, one)
    drive(one, in_phase("stopped"))
    assert reason_of(writer)[2]["by"] == ["other"]
    lifecycle.stop(house.bob, other)
    assert reason_of(writer)[1] == "volume_in_use"  # its pod still goes
    drive(other, in_phase("stopped"))
    assert drive(writer, in_phase("ready")).phase == "ready"


@pytest.mark.slow
def test_a_disk_leads_its_workspaces_to_its_node(house: Cast, api: Api) -> None:
    for node in Node.objects.all():
        node.labels["kubernetes.io/hostname"] = node.name
        node.save()
    volume = keep(created(house, kind="disk"), volume_in_phase("ready"))
    first = drive(launched(house, "first", volume, read_only=False), in_phase("ready"))
    volume = keep(volume, lambda row: bool(row.bound_to))
    assert volume.node == (there := first.node)
    lifecycle.stop(house.alice, first)
    drive(first, in_phase("stopped"))
    second = drive(launched(house, "second", volume, read_only=False), in_phase("ready"))
    assert second.node == there


def test_what_is_shared_to_read_is_not_written_and_what_is_not_shared_not_mounted(
    house: Cast, api: Api
) -> None:
    volume = shared(house)
    for how, read_only in (("read", False), ("no", True)):
        changes.change(house.alice, volume, {"shared": how})
        with pytest.raises(Invalid) as refusal:
            launched(house, "bobs", volume, read_only=read_only, by=house.bob)
        assert list(refusal.value.fields) == ["volumes"]
    assert not Mount.objects.exists()
    assert not Claim.objects.exists()


def test_a_start_after_the_sharing_ended_says_so(house: Cast, api: Api) -> None:
    volume = shared(house)
    workspace = launched(house, "bobs", volume, read_only=True, by=house.bob)
    changes.change(house.alice, volume, {"shared": "no"})
    failed = drive(workspace, in_phase("failed"))
    assert (failed.failure or {})["code"] == "volume_not_shared"


@pytest.mark.slow
def test_a_volume_in_the_bin_is_not_mounted(house: Cast, api: Api) -> None:
    volume = shared(house)
    workspace = launched(house, "mine", volume, read_only=False)
    drive(workspace, in_phase("ready"))
    lifecycle.stop(house.alice, workspace)
    drive(workspace, in_phase("stopped"))
    changes.delete(house.alice, volume)
    with pytest.raises(Invalid):
        launched(house, "other", volume, read_only=True)
    lifecycle.start(house.alice, workspace)
    assert (drive(workspace, in_phase("failed")).failure or {})["code"] == "volume_unusable"
    changes.restore(house.alice, volume)
    lifecycle.start(house.alice, workspace)
    drive(workspace, in_phase("ready"))
    assert "ready" in told(workspace)


def test_a_deleted_workspace_lets_go_of_its_volumes(house: Cast, api: Api) -> None:
    volume = shared(house)
    workspace = drive(launched(house, "mine", volume, read_only=False), in_phase("ready"))
    lifecycle.delete(house.alice, workspace)
    drive(workspace, in_phase("deleted"))
    assert not Mount.objects.exists()
    assert changes.delete(house.alice, volume, now=True)


@pytest.mark.parametrize(
    "path", ["data", "/", "/etc/x", "/data/../etc", "/home", "/home/jovyan/x", "/disk", "/a b"]
)
def test_paths_that_are_taken_or_no_paths_are_refused(house: Cast, path: str) -> None:
    with pytest.raises(Invalid) as refusal:
        launched(house, "mine", created(house), read_only=True, path=path)
    assert list(refusal.value.fields) == ["volumes"]


def test_another_tenants_volume_is_not_there(house: Cast) -> None:
    volume = created(house)
    Volume.objects.update(tenant=house.second)
    with pytest.raises(Invalid) as refusal:
        launched(house, "mine", volume, read_only=True)
    assert list(refusal.value.fields) == ["volumes"]


def test_growth_and_launches_at_the_same_time_take_their_locks_in_one_order(house: Cast) -> None:
    TenantLimit.objects.create(tenant=house.demo, storage_mib=10**6)
    volume = created(house)

    def work(number: int) -> None:
        actor = Actor(User.objects.get(pk=house.alice.user.pk))
        for again in range(3):
            with suppress(Invalid):  # another one has made it larger
                changes.change(actor, changes.fresh(volume), {"size_mib": 1024 * (number + again + 1)})
            if number % 2:
                launched(house, f"w-{number}-{again}", volume, read_only=True, by=actor)

    at_once(work, 4)
    assert Volume.objects.get(pk=volume.pk).requested_mib == 1024 * 6
    assert Mount.objects.filter(volume=volume).count() == 6
