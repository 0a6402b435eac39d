"""Storage of a tenant: homes and disks count when they are promised, and are refused beyond its limit."""

from __future__ import annotations

import pytest

from accounts.errors import Invalid
from quotas.allowed import storage
from quotas.allowed.ceilings import ceilings
from quotas.models import TenantLimit
from quotas.queries import limits_for
from tests.cast import Cast
from tests.shared.concurrency import at_once
from tests.workspaces.specs import spec
from workspaces.launch.launch import launch
from workspaces.models import Desired, Phase, Workspace
from workspaces.runs import changes
from workspaces.runs.changes import Change

pytestmark = pytest.mark.django_db
GIB = 1024  # MiB
HOME = 10 * GIB


def launched(cast: Cast, name: str, disk_gib: int = 0) -> Workspace:
    return launch(cast.alice, spec(name=name, disk_mib=disk_gib * GIB))


@pytest.fixture
def limit(cast: Cast) -> TenantLimit:
    return TenantLimit.objects.create(tenant=cast.demo, storage_mib=3 * HOME)


def used(cast: Cast) -> int:
    return storage.storage_of([cast.demo.pk])[cast.demo.pk]["storage_mib"]


def test_a_home_and_each_disk_count_and_more_than_the_limit_is_refused(
    cast: Cast, limit: TenantLimit
) -> None:
    launched(cast, "one", disk_gib=9)
    with pytest.raises(Invalid, match=r"Demo uses 19 of 30 GiB of storage. This needs 12 GiB") as refused:
        launched(cast, "two", disk_gib=12)
    assert (refused.value.code, list(refused.value.fields)) == ("above_storage_limit", ["disk_mib"])
    launched(cast, "two", disk_gib=11)
    assert used(cast) == 3 * HOME
    assert limits_for(cast.bob)[0]["storage_mib"] == {"used": 3 * HOME, "limit": 3 * HOME}


def test_a_disk_that_is_added_later_counts_too(cast: Cast, limit: TenantLimit) -> None:
    row = launched(cast, "one", disk_gib=0)
    launched(cast, "two", disk_gib=15)
    Workspace.objects.filter(pk=row.pk).update(desired=Desired.STOPPED, phase=Phase.STOPPED)
    with pytest.raises(Invalid, match="25 of 30 GiB"):
        changes.change(cast.alice, row, Change(disk_mib=6 * GIB))
    assert changes.change(cast.alice, row, Change(disk_mib=5 * GIB))


def test_the_clusters_resource_quota_has_the_same_limit(cast: Cast, limit: TenantLimit) -> None:
    assert ceilings(cast.demo, cast.cluster)["requests.storage"] == 30 * 1024**3
    assert "requests.storage" not in ceilings(cast.second, cast.cluster)


@pytest.mark.django_db(transaction=True)
def test_of_two_launches_at_once_one_gets_the_last_storage(cast: Cast) -> None:
    TenantLimit.objects.create(tenant=cast.demo, storage_mib=HOME + GIB)

    def is_refused(number: int) -> bool:
        try:
            launched(cast, f"exp-{number}", disk_gib=1)
        except Invalid:
            return True
        return False

    assert sorted(at_once(is_refused, 2)) == [False, True]
    assert used(cast) == HOME + GIB
