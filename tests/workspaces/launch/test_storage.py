"""Storage of a tenant: homes and disks count when they are promised, and are refused beyond its limit."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from accounts.errors import Invalid
from quotas.allowed.ceilings import ceilings
from quotas.models import TenantLimit
from quotas.queries import limits_for
from tests.cast import Cast
from workspaces.launch import storage
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Desired, Phase, Workspace
from workspaces.runs import changes
from workspaces.runs.changes import Change
from workspaces.sizes.sizing import SizeAsked

pytestmark = pytest.mark.django_db
GIB = 1024  # MiB
HOME = 10 * GIB


def launched(cast: Cast, name: str, disk_gib: int = 0) -> Workspace:
    spec = LaunchSpec(
        tenant="demo", name=name, image="jupyter", size=SizeAsked(flavor="a100-1"), disk_mib=disk_gib * GIB
    )
    return launch(cast.alice, spec)


@pytest.fixture
def limit(cast: Cast) -> TenantLimit:
    return TenantLimit.objects.create(tenant=cast.demo, storage_mib=3 * HOME)


def used(cast: Cast) -> int:
    return storage.promised_mib([cast.demo.pk])[cast.demo.pk]


def test_homes_and_disks_are_counted_and_more_is_refused_with_what_is_used(
    cast: Cast, limit: TenantLimit
) -> None:
    launched(cast, "one", disk_gib=9)
    with pytest.raises(Invalid, match=r"Demo uses 19 of 30 GiB of storage. This needs 12 GiB") as refused:
        launched(cast, "two", disk_gib=2)
    assert (refused.value.code, list(refused.value.fields)) == ("above_storage_limit", ["disk_mib"])
    launched(cast, "two", disk_gib=1)
    assert used(cast) == 3 * HOME
    assert limits_for(cast.bob)[0]["storage_mib"] == {"used": 3 * HOME, "limit": 3 * HOME}


def test_a_disk_that_is_added_later_counts_too(cast: Cast, limit: TenantLimit) -> None:
    row = launched(cast, "one", disk_gib=0)
    launched(cast, "two", disk_gib=5)
    Workspace.objects.filter(pk=row.pk).update(desired=Desired.STOPPED, phase=Phase.STOPPED)
    with pytest.raises(Invalid, match="25 of 30 GiB"):
        changes.change(cast.alice, row, Change(disk_mib=6 * GIB))
    assert changes.change(cast.alice, row, Change(disk_mib=5 * GIB))


def test_what_is_kept_of_a_deleted_one_counts_and_what_was_deleted_does_not(
    cast: Cast, limit: TenantLimit
) -> None:
    kept, gone, never_made = (launched(cast, name) for name in ("kept", "gone", "never-made"))
    rows = Workspace.objects.filter(pk__in=[kept.pk, gone.pk, never_made.pk])
    rows.update(deleted_at="2026-01-01T00:00:00Z", volumes={"home": "pv-1"})
    Workspace.objects.filter(pk=gone.pk).update(delete_disk=True)
    Workspace.objects.filter(pk=never_made.pk).update(volumes={})
    assert used(cast) == HOME


def test_the_backstop_in_the_cluster_says_the_same(cast: Cast, limit: TenantLimit) -> None:
    assert ceilings(cast.demo, cast.cluster)["requests.storage"] == 30 * 1024**3
    assert "requests.storage" not in ceilings(cast.second, cast.cluster)


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_gets_the_last_of_it(cast: Cast) -> None:
    TenantLimit.objects.create(tenant=cast.demo, storage_mib=HOME)
    refused = []

    def one(name: str) -> None:
        try:
            launched(cast, name)
        except Invalid:
            refused.append(name)
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(refused), used(cast)) == (1, HOME)
