"""Workspaces cloned with their files, on a real HTTP Kubernetes API whose driver copies volumes."""

from __future__ import annotations

import pytest

from accounts.errors import Conflict, Invalid, NotAllowed
from accounts.models import Membership, Role
from clusters.api import Api
from quotas import admission
from quotas.allowed.storage import storage_of
from quotas.models import TenantLimit
from storage.models import Kind, Mount, Snapshot, Volume
from storage.mounts.mounting import MountWish
from tests.cast import Cast
from tests.shared.clients import ask, script
from tests.shared.driving import claim_of, drive, launched
from tests.shared.driving import in_phase as run_in_phase
from tests.shared.keeping import created, in_phase, keep, settle
from workspaces.launch.clone import clone
from workspaces.models import Workspace

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def source(house: Cast, api: Api) -> Workspace:
    """A workspace of alice's that is ready, with a disk, a dataset of her own and one that she shares."""
    house.cluster.home_class = house.cluster.disk_class = "net-shared"
    house.cluster.save()
    own = keep(created(house, name="own"), in_phase("ready"))
    shared = keep(created(house, name="shared", shared="read"), in_phase("ready"))
    house.cluster.disk_class = "net-shared"
    house.cluster.save()
    wishes = [MountWish(volume=volume.pk, path=f"/{volume.name}") for volume in (own, shared)]
    row = drive(launched(house, "exp", disk_mib=128, volumes=wishes), run_in_phase("ready"))
    for mount in Mount.objects.filter(holder=row.pk, path__in=("~", "/disk")).select_related("volume"):
        keep(mount.volume, lambda volume: bool(volume.bound_to))
    return row


def volume_at(workspace: Workspace, path: str) -> Volume:
    return Mount.objects.select_related("volume__source").get(holder=workspace.pk, path=path).volume


def chosen(workspace: Workspace) -> list[str]:
    mounts = Mount.objects.filter(holder=workspace.pk).exclude(path__in=("~", "/disk"))
    return sorted(mounts.values_list("path", flat=True))


@pytest.mark.slow
def test_a_clone_with_files_waits_for_its_copies_without_a_gpu_and_mounts_them(
    house: Cast, api: Api, source: Workspace
) -> None:
    copy = clone(house.alice, source, files=True)
    admission.admit(copy.pool_id)
    waiting = claim_of(copy)
    assert (waiting.state, waiting.reason_code, waiting.node) == ("waiting", "volume_being_made", "")
    home, disk = volume_at(copy, "~"), volume_at(copy, "/disk")
    assert (home.kind, home.is_main, home.made_for, home.owner) == (Kind.HOME, False, None, house.alice.user)
    assert (disk.kind, disk.made_for, disk.requested_mib) == (Kind.DISK, copy.pk, 128)
    for volume, path in ((home, "~"), (disk, "/disk")):
        assert volume.source is not None
        assert volume.source.volume == volume_at(source, path)
        settle(volume.source)
        keep(volume, in_phase("ready"))
    copy = drive(copy, run_in_phase("ready"))
    pod = api.get("Pod", house.demo.namespace, copy.object_name)
    assert pod is not None
    assert {home.object_name, disk.object_name} <= {one["name"] for one in pod["spec"]["volumes"]}
    assert chosen(copy) == ["/own", "/shared"]
    assert copy.events.filter(code="cloned_with_files").exists()


@pytest.mark.slow
def test_an_owner_of_the_tenant_hands_it_on_without_what_is_not_shared(
    house: Cast, api: Api, source: Workspace
) -> None:
    Membership.objects.filter(user=house.bob.user, tenant=house.demo).update(role=Role.OWNER)
    copy = clone(house.bob, source, files=True)
    assert volume_at(copy, "~").owner == house.bob.user
    assert chosen(copy) == ["/shared"]
    assert copy.events.get(code="volumes_left_out").data == {"names": "own"}
    assert copy.events.filter(code="cloned_with_files_of_another").exists()


@pytest.mark.slow
def test_who_may_not_read_the_files_clones_the_settings_alone(
    house: Cast, api: Api, source: Workspace
) -> None:
    with pytest.raises(NotAllowed):
        clone(house.bob, source, files=True)
    assert not Snapshot.objects.exists()
    answer = ask(script(house.bob), "POST", f"workspaces/{source.pk}/clone/", {"files": False})
    assert answer.status_code == 202
    row = Workspace.objects.get(pk=answer.json()["id"])
    assert (chosen(row), volume_at(row, "~").source) == ([], None)


def test_what_never_started_has_no_files_to_copy(house: Cast) -> None:
    row = launched(house, "exp")
    with pytest.raises(Conflict) as refusal:
        clone(house.alice, row, files=True)
    assert refusal.value.code == "not_ready"
    assert Workspace.objects.count() == 1


def test_the_copies_count_toward_the_storage_limit(house: Cast, api: Api, source: Workspace) -> None:
    before = storage_of([house.demo.pk])
    TenantLimit.objects.create(tenant=house.demo, storage_mib=1)
    with pytest.raises(Invalid):
        clone(house.alice, source, files=True)
    assert storage_of([house.demo.pk]) == before
