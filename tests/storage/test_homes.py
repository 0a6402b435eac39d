"""Homes of people and disks of workspaces: made at a launch, found again, kept or deleted with their workspace."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from accounts.access import Actor
from accounts.errors import Conflict
from accounts.models import Scope
from storage import changes
from storage.models import Kind, Mount, Phase, Volume
from storage.mounts import homes
from tests.cast import Cast
from tests.shared.clients import ask, script
from workloads.sizes.sizing import SizeAsked
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Workspace
from workspaces.runs import lifecycle

pytestmark = pytest.mark.django_db


def launched(cast: Cast, name: str, by: Actor | None = None, **more: Any) -> Workspace:
    size = SizeAsked(flavor="a100-1")
    return launch(by or cast.alice, LaunchSpec(tenant="demo", name=name, image="jupyter", size=size, **more))


def home_of(workspace: Workspace) -> Volume:
    return Mount.objects.select_related("volume").get(holder=workspace.pk, path="~").volume


def stopped(workspace: Workspace) -> Workspace:
    lifecycle.stop(Actor(workspace.owner), workspace)
    return Workspace.objects.get(pk=workspace.pk)


def test_all_workspaces_of_a_person_in_a_tenant_mount_one_home(cast: Cast) -> None:
    one, two, bobs = launched(cast, "one"), launched(cast, "two"), launched(cast, "one", by=cast.bob)
    assert home_of(one) == home_of(two) != home_of(bobs)
    home = home_of(one)
    assert (home.kind, home.name, home.requested_mib) == (Kind.HOME, "home", cast.cluster.home_mib)


def test_a_disk_is_its_workspaces_own(cast: Cast) -> None:
    launched(cast, "one", disk_mib=1024)
    launched(cast, "two", disk_mib=2048)
    disks = Volume.objects.filter(kind=Kind.DISK).order_by("name")
    assert [(disk.name, disk.requested_mib) for disk in disks] == [("one disk", 1024), ("two disk", 2048)]


def test_the_home_is_named_anew_if_the_person_has_a_volume_of_that_name(cast: Cast) -> None:
    changes.create(cast.alice, "demo", changes.Wish(name="home", kind="disk", size_mib=64))
    assert home_of(launched(cast, "one")).name == "home-2"


def test_a_new_workspace_gets_a_new_home_while_the_old_one_is_in_the_bin(cast: Cast) -> None:
    first = launched(cast, "one")
    old = home_of(first)
    lifecycle.stop(cast.alice, first)
    changes.delete(cast.alice, old)
    new = home_of(launched(cast, "two"))
    assert new != old
    with pytest.raises(Conflict) as refusal:
        changes.restore(cast.alice, changes.fresh(old))
    assert refusal.value.code == "name_taken"
    changes.change(cast.alice, changes.fresh(new), {"name": "new home"})
    changes.restore(cast.alice, changes.fresh(old))
    mains = Volume.objects.filter(is_main=True, bin_until=None)
    assert [volume.pk for volume in mains] == [new.pk]


def test_a_workspace_whose_home_is_deleted_for_good_starts_with_a_new_one(cast: Cast) -> None:
    row = stopped(launched(cast, "one", disk_mib=1024))
    Volume.objects.update(deleted_at=timezone.now(), phase=Phase.DELETED)
    assert lifecycle.start(cast.alice, row)
    assert home_of(row).deleted_at is None
    assert Mount.objects.filter(holder=row.pk).count() == 1


def test_a_person_chooses_which_home_new_workspaces_mount(cast: Cast) -> None:
    old = home_of(launched(cast, "one"))
    other = Volume.objects.create(
        tenant=cast.demo,
        owner=cast.alice.user,
        cluster=cast.cluster,
        name="old",
        kind="home",
        requested_mib=64,
    )
    alice = script(cast.alice, Scope.READ, Scope.VOLUMES)
    answer = ask(alice, "PATCH", f"volumes/{other.pk}/", {"main": True})
    assert (answer.status_code, answer.json()["main"]) == (200, True)
    assert home_of(launched(cast, "two")) == other
    assert not Volume.objects.get(pk=old.pk).is_main
    assert home_of(Workspace.objects.get(name="one")) == old
    disk = changes.create(cast.alice, "demo", changes.Wish(name="d", kind="disk", size_mib=64))
    assert ask(alice, "PATCH", f"volumes/{disk.pk}/", {"main": True}).status_code == 422


def test_what_is_handed_to_somebody_else_belongs_to_no_workspace_any_more(cast: Cast) -> None:
    row = stopped(launched(cast, "one", disk_mib=1024))
    for volume in Volume.objects.all():
        changes.transfer(cast.alice, volume, "bob")
    homes.let_go(row.pk, with_data=True)
    assert not Volume.objects.exclude(bin_until=None).exists()
    assert not Volume.objects.filter(is_main=True).exists()


def test_a_disk_that_others_mount_is_not_deleted_with_its_workspace(cast: Cast) -> None:
    one = launched(cast, "one", disk_mib=1024)
    disk = Volume.objects.get(kind=Kind.DISK)
    Mount.objects.create(volume=disk, holder=launched(cast, "two").pk, path="/data", read_only=False)
    homes.let_go(one.pk, with_data=True)
    disk.refresh_from_db()
    assert (disk.bin_until, disk.made_for) == (None, None)


@pytest.mark.parametrize("with_data", [True, False])
def test_a_deleted_workspace_leaves_the_home_and_its_disk_unless_told(cast: Cast, with_data: bool) -> None:
    row = launched(cast, "one", disk_mib=1024)
    homes.let_go(row.pk, with_data=with_data)
    disk, home = Volume.objects.order_by("kind")
    assert (disk.bin_until is not None, disk.dirty_since is not None) == (with_data, with_data)
    assert (home.bin_until, home.is_main) == (None, True)
    assert not Mount.objects.exists()
