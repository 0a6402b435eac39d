"""Snapshots, versions and clones on a real HTTP Kubernetes API, whose driver copies volumes."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from accounts.access import Actor
from accounts.errors import Conflict, Invalid, NotThere
from clusters.api import Api
from quotas import admission
from storage import changes, copies, versions
from storage.api.serializers import volumes_json
from storage.cluster import snapshots
from storage.ending import MOST_VERSIONS
from storage.models import LATEST, Mount, Snapshot, Volume
from storage.mounts.mounting import MountWish
from storage.sources import Source
from tests.cast import Cast
from tests.shared.clients import api as client_of
from tests.shared.clients import ask
from tests.shared.driving import claim_of, drive
from tests.shared.driving import in_phase as run_in_phase
from tests.shared.keeping import ENOUGH_SECONDS, created, in_phase, keep, look_at, settle
from workloads.sizes.sizing import SizeAsked
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Workspace
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
CLAIM, SNAPSHOT, CONTENT = "PersistentVolumeClaim", "VolumeSnapshot", "VolumeSnapshotContent"


@pytest.fixture
def dataset(house: Cast) -> Volume:
    return keep(created(house), in_phase("ready"))


def published(house: Cast, dataset: Volume, note: str = "") -> Snapshot:
    return settle(copies.publish(house.alice, dataset, note))


def launched(house: Cast, name: str, wish: MountWish, by: Actor | None = None) -> Workspace:
    size = SizeAsked(flavor="a100-1")
    spec = LaunchSpec(tenant=house.demo.slug, name=name, image="jupyter", size=size, volumes=[wish])
    return launch(by or house.alice, spec)


def refused(code: str, use_case: Callable[..., Any], *arguments: Any) -> None:
    with pytest.raises((Conflict, Invalid)) as refusal:
        use_case(*arguments)
    assert refusal.value.code == code


# --- snapshots


def test_a_snapshot_is_kept_by_retain_and_a_new_volume_begins_with_its_files(
    house: Cast, api: Api, dataset: Volume
) -> None:
    taken = settle(copies.snapshot(house.alice, dataset, "before the cleaning"))
    assert (taken.size_mib, taken.number, taken.note) == (128, None, "before the cleaning")
    content = api.get(CONTENT, None, taken.content)
    assert content is not None
    assert content["spec"]["deletionPolicy"] == "Retain"
    assert taken.handle == content["status"]["snapshotHandle"]

    wish = changes.Wish(name="again", kind="disk", size_mib=256, begins=Source(snapshot=taken.pk))
    restored = keep(changes.create(house.alice, house.demo.slug, wish), in_phase("ready"))
    claim = api.get(CLAIM, house.demo.namespace, restored.object_name)
    assert claim is not None
    assert claim["spec"]["dataSource"]["name"] == taken.object_name
    assert (restored.storage_class, restored.size_mib, restored.bound_to) == (
        "net-shared",
        256,
        claim["spec"]["volumeName"],
    )


def test_a_snapshot_that_somebody_deletes_is_found_again_with_the_same_copy(
    house: Cast, api: Api, dataset: Volume
) -> None:
    taken = settle(copies.snapshot(house.alice, dataset))
    for again in ("one", "two"):
        assert api.delete(SNAPSHOT, house.demo.namespace, taken.object_name)
        wish = changes.Wish(name=again, kind="dataset", size_mib=128, begins=Source(snapshot=taken.pk))
        keep(changes.create(house.alice, house.demo.slug, wish), in_phase("ready"))
        now = Snapshot.objects.get(pk=taken.pk)
        assert now.handle == taken.handle
        contents = [one for one in api.list(CONTENT) if one["metadata"]["name"].startswith(taken.content)]
        assert [one["metadata"]["name"] for one in contents] == [now.content]


def test_a_deleted_snapshot_leaves_nothing_behind(house: Cast, api: Api, dataset: Volume) -> None:
    taken = settle(copies.snapshot(house.alice, dataset))
    assert copies.delete(house.alice, dataset, taken)
    assert not copies.delete(house.alice, dataset, taken)
    assert settle(taken, "deleted").deleted_at is not None
    assert api.get(SNAPSHOT, house.demo.namespace, taken.object_name) is None
    assert api.get(CONTENT, None, taken.content) is None
    with pytest.raises(NotThere):
        copies.get(house.alice, dataset, taken.pk)


def test_a_copy_whose_objects_are_half_gone_is_deleted_too(house: Cast, api: Api, dataset: Volume) -> None:
    taken = settle(copies.snapshot(house.alice, dataset))
    api.delete(SNAPSHOT, house.demo.namespace, taken.object_name)  # its content stays, by Retain
    copies.delete(house.alice, dataset, taken)
    settle(taken, "deleted")
    assert api.get(CONTENT, None, taken.content) is None


def test_what_cannot_be_copied_is_refused_or_said(house: Cast, api: Api, dataset: Volume) -> None:
    unbound = keep(created(house, name="fast", kind="disk"), in_phase("ready"))
    refused("not_ready", copies.snapshot, house.alice, unbound)
    refused("no_dataset", copies.publish, house.alice, unbound)
    Volume.objects.filter(pk=dataset.pk).update(driver="other.example")
    taken = settle(copies.snapshot(house.alice, dataset), "failed")
    assert taken.problem == "no_snapshot_class"
    clone = copies.clone(house.alice, dataset, "copy")
    assert clone.source is not None
    settle(clone.source, "failed")
    assert keep(clone, in_phase("failed")).problem == "no_snapshot_class"
    Volume.objects.filter(pk=dataset.pk).update(driver="-")
    refused("cannot_copy", copies.snapshot, house.alice, dataset)
    refused("cannot_copy", copies.clone, house.alice, dataset, "other")
    changes.delete(house.alice, dataset)
    refused("in_bin", copies.snapshot, house.alice, dataset)


def test_a_copy_that_never_comes_is_given_up_and_leaves_nothing(
    house: Cast, api: Api, dataset: Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = copies.publish(house.alice, dataset)
    monkeypatch.setattr(snapshots, "GIVEN_UP_AFTER", timedelta())
    look_at(dataset)  # makes it, and has no patience
    now = Snapshot.objects.get(pk=taken.pk)
    if now.phase == "ready":
        pytest.skip("the driver was quicker")
    assert (now.phase, now.problem) == ("failed", "snapshot_failed")
    copies.delete(house.alice, dataset, taken)
    settle(taken, "deleted")
    assert api.get(SNAPSHOT, house.demo.namespace, taken.object_name) is None


# --- clones


def test_a_clone_begins_with_the_files_and_its_passing_copy_goes(
    house: Cast, api: Api, dataset: Volume
) -> None:
    clone = copies.clone(house.alice, dataset, "copy")
    assert clone.source is not None
    settle(clone.source)
    clone = keep(clone, in_phase("ready"))
    assert clone.bound_to != dataset.bound_to
    passed = settle(Snapshot.objects.get(), "deleted")
    assert api.get(CONTENT, None, passed.content) is None
    assert list(copies.shown(dataset)) == []


def test_a_source_stays_until_its_clone_has_its_files(house: Cast, api: Api, dataset: Volume) -> None:
    clone = copies.clone(house.alice, dataset, "copy")
    changes.delete(house.alice, dataset, now=True)
    look_at(dataset)
    assert Volume.objects.get(pk=dataset.pk).deleted_at is None
    assert clone.source is not None
    settle(clone.source)
    look_at(dataset)
    assert api.get(CLAIM, house.demo.namespace, dataset.object_name) is not None
    keep(clone, in_phase("ready"))
    keep(dataset, in_phase("deleted"))
    assert Snapshot.objects.get().phase == "deleted"


@pytest.mark.parametrize("shared", ["no", "read"])
def test_a_colleague_copies_only_what_is_shared(house: Cast, shared: str) -> None:
    volume = keep(created(house, shared=shared), in_phase("ready"))
    taken = settle(copies.snapshot(house.alice, volume))
    for begins in (Source(volume=volume.pk), Source(snapshot=taken.pk)):
        wish = changes.Wish(name=f"of bob {uuid4()}", kind="disk", size_mib=128, begins=begins)
        if shared == "no":
            refused("no_source", changes.create, house.bob, house.demo.slug, wish)
        else:
            assert changes.create(house.bob, house.demo.slug, wish).owner == house.bob.user


def test_a_copy_is_no_smaller_than_its_source_and_a_home_comes_from_a_home(
    house: Cast, dataset: Volume
) -> None:
    small = changes.Wish(name="small", kind="disk", size_mib=64, begins=Source(volume=dataset.pk))
    refused("too_small", changes.create, house.alice, house.demo.slug, small)
    home = changes.Wish(name="at home", kind="home", size_mib=128, begins=Source(volume=dataset.pk))
    refused("made_by_itself", changes.create, house.alice, house.demo.slug, home)
    assert not Snapshot.objects.exists()


# --- versions


def test_readers_mount_a_version_while_the_dataset_is_written(house: Cast, api: Api, dataset: Volume) -> None:
    version = published(house, dataset, "first labels")
    assert version.number == 1
    [shown] = volumes_json([dataset])
    assert [(one["number"], one["note"], one["phase"]) for one in shown["versions"]] == [
        (1, "first labels", "ready")
    ]
    writer = drive(
        launched(house, "writer", MountWish(volume=dataset.pk, path="/data", read_only=False)),
        run_in_phase("ready"),
    )
    reader = launched(house, "reader", MountWish(volume=dataset.pk, path="/data", version="1"))
    mounted = keep(Volume.objects.get(is_version=True), in_phase("ready"))
    assert (mounted.access, mounted.source) == ("rox", version)
    reader = drive(reader, run_in_phase("ready"))
    pod = api.get("Pod", house.demo.namespace, reader.object_name)
    assert pod is not None
    [volume] = [one for one in pod["spec"]["volumes"] if one["name"] == mounted.object_name]
    assert volume["persistentVolumeClaim"] == {"claimName": mounted.object_name, "readOnly": True}
    refused("in_use", copies.publish, house.alice, dataset)  # the writer is still there
    refused("in_use", copies.delete, house.alice, dataset, version)
    lifecycle.stop(house.alice, writer)
    drive(writer, run_in_phase("stopped"))
    refused("in_use", changes.delete, house.alice, dataset)


def test_a_writer_waits_until_the_version_is_taken(house: Cast, dataset: Volume) -> None:
    version = copies.publish(house.alice, dataset)
    writer = launched(house, "writer", MountWish(volume=dataset.pk, path="/data", read_only=False))
    admission.admit(writer.pool_id)
    claim = claim_of(writer)
    assert (claim.state, claim.reason_code) == ("waiting", "volume_in_use")
    settle(version)
    assert drive(writer, run_in_phase("ready")).phase == "ready"


def test_the_latest_version_is_the_one_at_the_start(house: Cast, dataset: Volume) -> None:
    wish = MountWish(volume=dataset.pk, path="/data", version=LATEST)
    refused("invalid", launched, house, "early", wish)
    published(house, dataset)
    workspace = launched(house, "reader", wish)
    first = Mount.objects.get(holder=workspace.pk, version=LATEST).volume
    keep(first, in_phase("ready"))
    drive(workspace, run_in_phase("ready"))
    lifecycle.stop(house.alice, workspace)
    drive(workspace, run_in_phase("stopped"))
    second = published(house, dataset)
    lifecycle.start(house.alice, workspace)
    now = Mount.objects.get(holder=workspace.pk, version=LATEST).volume
    assert (now.source, now.pk == first.pk) == (second, False)


@pytest.mark.parametrize(
    ("version", "read_only"), [("2", True), ("1", False), (LATEST, False)], ids=["none", "to write", "latest"]
)
def test_a_version_that_cannot_be_mounted_is_refused(
    house: Cast, dataset: Volume, version: str, *, read_only: bool
) -> None:
    published(house, dataset)
    wish = MountWish(volume=dataset.pk, path="/data", version=version, read_only=read_only)
    refused("invalid", launched, house, "reader", wish)


def test_only_ready_versions_push_old_ones_out_and_mounted_ones_stay(house: Cast, dataset: Volume) -> None:
    common = {"volume": dataset, "by": house.alice.user}
    for number in range(1, MOST_VERSIONS + 1):
        Snapshot.objects.create(**common, number=number, phase="failed" if number == 3 else "ready")
    first = versions.volume_of(Snapshot.objects.get(number=1))
    holder = launched(house, "reader", MountWish(volume=dataset.pk, path="/data", version="1"))
    assert Mount.objects.get(holder=holder.pk, version="1").volume == first
    admission.admit(holder.pool_id)

    def ending() -> set[int | None]:
        return set(Snapshot.objects.filter(phase="deleting").values_list("number", flat=True))

    published(house, dataset)
    assert ending() == set()
    taken = copies.publish(house.alice, dataset)
    assert ending() == set()  # it is not ready yet
    deadline = time.monotonic() + ENOUGH_SECONDS
    while Snapshot.objects.get(pk=taken.pk).phase != "ready" and time.monotonic() < deadline:
        look_at(dataset)
    assert 1 not in ending() | set(Snapshot.objects.filter(phase="deleted").values_list("number", flat=True))


def test_a_deleted_version_takes_the_volume_along_by_which_it_was_mounted(
    house: Cast, api: Api, dataset: Volume
) -> None:
    version = published(house, dataset)
    mounted = keep(versions.volume_of(version), in_phase("ready"))
    assert copies.delete(house.alice, dataset, version)
    look_at(dataset)
    assert Snapshot.objects.get(pk=version.pk).phase == "deleting"
    keep(mounted, in_phase("deleted"))
    settle(version, "deleted")
    assert api.get(CLAIM, house.demo.namespace, mounted.object_name) is None


def test_versions_go_with_their_dataset(house: Cast, api: Api, dataset: Volume) -> None:
    version = published(house, dataset)
    keep(versions.volume_of(version), in_phase("ready"))
    changes.delete(house.alice, dataset)
    Volume.objects.filter(pk=dataset.pk).update(bin_until=timezone.now())
    look_at(dataset)
    keep(Volume.objects.get(is_version=True), in_phase("deleted"))
    keep(dataset, in_phase("deleted"))
    assert api.get(CONTENT, None, version.content) is None


@pytest.mark.parametrize(("version", "kept"), [(1, 1), ("1", 1), ("latest", "latest"), (None, None)])
def test_a_launch_by_the_api_names_a_version(house: Cast, dataset: Volume, version: Any, kept: Any) -> None:
    published(house, dataset)
    mount = {"volume": str(dataset.pk), "path": "/data", "version": version}
    body = {"tenant": house.demo.slug, "name": "reader", "image": "jupyter", "flavor": "a100-1"}
    made = ask(client_of(house.alice), "POST", "workspaces/", {**body, "volumes": [mount]})
    assert made.status_code == 201
    assert made.json()["volumes"] == [
        {"volume": str(dataset.pk), "name": "data", "version": kept, "path": "/data", "read_only": True}
    ]


@pytest.mark.parametrize("version", [0, -1, True, 1.5, "", "first", [1]])
def test_what_is_no_version_is_refused(house: Cast, dataset: Volume, version: Any) -> None:
    mount = {"volume": str(dataset.pk), "path": "/data", "version": version}
    body = {"tenant": house.demo.slug, "name": "reader", "image": "jupyter", "flavor": "a100-1"}
    assert ask(client_of(house.alice), "POST", "workspaces/", {**body, "volumes": [mount]}).status_code == 400
