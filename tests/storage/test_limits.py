"""Limits of storage by tenant, kind and person: what counts, what is refused, and with what words' data."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.access import Actor
from accounts.errors import Refusal
from accounts.models import User
from quotas.allowed.storage import BY_KIND, LIMITS, PERSON, TENANT, Promise, amounts, exceeded, storage_of
from quotas.models import TenantLimit
from quotas.queries import limits_for
from storage import changes
from storage.models import Kind, Mount, Phase, Snapshot, Volume
from tests.admin_forms import text_of
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.concurrency import at_once
from workloads.sizes.sizing import SizeAsked
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Workspace
from workspaces.runs import lifecycle

pytestmark = pytest.mark.django_db
GIB = 1024  # MiB

promises = st.builds(
    Promise,
    tenant=st.just(UUID(int=1)),
    person=st.sampled_from([None, 1, 2, 3]),
    kind=st.sampled_from([*Kind]),
    mib=st.integers(0, 10**6),
)


@given(st.lists(promises), st.sampled_from([1, 2, 3]))
def test_each_promise_counts_once_for_its_tenant_kind_and_person(found: list[Promise], person: int) -> None:
    used = amounts(found, person)
    assert used[TENANT] == sum(one.mib for one in found)
    for kind, name in BY_KIND.items():
        assert used[name] == sum(one.mib for one in found if one.kind == kind)
    everyone = sum(amounts(found, other)[PERSON] for other in (1, 2, 3))
    assert everyone == sum(one.mib for one in found if one.person is not None)
    assert amounts(found, None)[PERSON] == 0


sizes = st.fixed_dictionaries({name: st.integers(0, 100) for name in LIMITS})


@given(st.fixed_dictionaries({name: st.none() | st.integers(0, 100) for name in LIMITS}), sizes, sizes)
def test_a_request_passes_exactly_if_no_limit_that_it_adds_to_is_exceeded(
    most: dict[str, int | None], used: dict[str, int], asked: dict[str, int]
) -> None:
    def is_over(name: str) -> bool:
        limit = most[name]
        return asked[name] > 0 and limit is not None and used[name] + asked[name] > limit

    name = exceeded(most, used, asked)
    assert is_over(name) if name else not any(map(is_over, LIMITS))


def limit(cast: Cast, **most: int) -> None:
    TenantLimit.objects.create(tenant=cast.demo, **most)


def create(cast: Cast, by: Actor | None = None, **wish: Any) -> Volume:
    actor = again(by or cast.alice)
    return changes.create(actor, "demo", changes.Wish(**{"name": "data", "kind": "dataset", **wish}))


def again(actor: Actor) -> Actor:
    """Return the person as a new request has them: tenants read before keep the limits of then."""
    return Actor(User.objects.get(pk=actor.user.pk))


def refused(call: Any, *args: Any, **kwargs: Any) -> Refusal:
    with pytest.raises(Refusal) as refusal:
        call(*args, **kwargs)
    return refusal.value


def spec(name: str, disk_mib: int = 0) -> LaunchSpec:
    size = SizeAsked(flavor="a100-1")
    return LaunchSpec(tenant="demo", name=name, image="jupyter", size=size, disk_mib=disk_mib)


def words(response: Any) -> str:
    """Return the text of a page without markup."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text_of(response))).split())


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [("disk", "disks_mib", "above_disks_limit"), ("dataset", "datasets_mib", "above_datasets_limit")],
)
def test_a_kind_has_its_limit_and_others_do_not_count(cast: Cast, kind: str, name: str, code: str) -> None:
    limit(cast, **{name: 3 * GIB})
    create(cast, name="other", kind="disk" if kind == "dataset" else "dataset", size_mib=9 * GIB)
    volume = create(cast, kind=kind, size_mib=2 * GIB)
    refusal = refused(create, cast, cast.bob, kind=kind, size_mib=1025)
    assert (refusal.code, list(refusal.fields), bool(refusal.hint)) == (code, ["size_mib"], True)
    assert "Demo" in refusal.message and "2 of 3 GiB" in refusal.message
    assert refused(changes.change, cast.alice, changes.fresh(volume), {"size_mib": 4 * GIB}).code == code
    assert changes.change(cast.alice, changes.fresh(volume), {"size_mib": 3 * GIB})


def test_a_person_has_a_limit_of_their_own_over_all_kinds(cast: Cast) -> None:
    limit(cast, person_storage_mib=3 * GIB)
    create(cast, kind="disk", size_mib=2 * GIB)
    refusal = refused(create, cast, size_mib=2 * GIB)
    assert refusal.code == "above_person_storage_limit"
    assert "alice uses 2 of the 3 GiB" in refusal.message
    theirs = create(cast, cast.bob, size_mib=3 * GIB)
    # An owner of the tenant who grows it does so for its owner.
    grow = refused(changes.change, cast.alice, changes.fresh(theirs), {"size_mib": 4 * GIB})
    assert (grow.code, "bob" in grow.message) == ("above_person_storage_limit", True)


def test_a_volume_that_is_handed_on_counts_for_its_new_owner(cast: Cast) -> None:
    limit(cast, person_storage_mib=3 * GIB, storage_mib=4 * GIB)
    create(cast, size_mib=2 * GIB)
    volume = create(cast, cast.bob, name="theirs", size_mib=2 * GIB)
    refusal = refused(changes.transfer, cast.bob, changes.fresh(volume), "alice")
    assert (refusal.code, list(refusal.fields)) == ("above_person_storage_limit", ["username"])
    assert changes.fresh(volume).owner == cast.bob.user
    TenantLimit.objects.update(person_storage_mib=4 * GIB, storage_mib=GIB)  # nothing new for the tenant
    assert changes.transfer(cast.bob, changes.fresh(volume), "alice")


def test_the_limits_of_homes_and_people_hold_at_a_launch(cast: Cast) -> None:
    home_mib = cast.cluster.home_mib
    limit(cast, homes_mib=home_mib, person_storage_mib=home_mib + GIB)
    refusal = refused(launch, cast.alice, spec(name="one", disk_mib=2 * GIB))
    assert (refusal.code, list(refusal.fields)) == ("above_person_storage_limit", ["disk_mib"])
    launch(cast.alice, spec(name="one", disk_mib=GIB))
    launch(again(cast.alice), spec(name="two"))  # the home is there
    assert refused(launch, cast.bob, spec(name="one")).code == "above_homes_limit"


def test_a_launch_that_needs_no_more_storage_is_not_refused_above_the_limit(cast: Cast) -> None:
    launch(cast.alice, spec(name="one"))
    limit(cast, storage_mib=GIB)
    assert launch(again(cast.alice), spec(name="two")).name == "two"


def test_a_home_that_a_start_makes_anew_counts_too(cast: Cast) -> None:
    row = launch(cast.alice, spec(name="one"))
    lifecycle.stop(cast.alice, row)
    Volume.objects.update(deleted_at=timezone.now(), phase=Phase.DELETED)
    limit(cast, homes_mib=GIB)
    row = Workspace.objects.get(pk=row.pk)
    assert refused(lifecycle.start, cast.alice, row).code == "above_homes_limit"
    TenantLimit.objects.update(homes_mib=cast.cluster.home_mib)
    assert lifecycle.start(cast.alice, Workspace.objects.get(pk=row.pk))
    assert Mount.objects.get(holder=row.pk).volume.deleted_at is None


def test_a_mounted_version_counts_for_the_tenant_and_for_no_person(cast: Cast) -> None:
    dataset = create(cast, size_mib=GIB)
    version = Snapshot.objects.create(volume=dataset, by=cast.alice.user, number=1)
    facts = {"tenant": cast.demo, "owner": cast.alice.user, "cluster": cast.cluster, "kind": "dataset"}
    Volume.objects.create(**facts, name="data v1", requested_mib=GIB, source=version, is_version=True)
    used = storage_of([cast.demo.pk], cast.alice.user.pk)[cast.demo.pk]
    assert used == {TENANT: 2 * GIB, "homes_mib": 0, "disks_mib": 0, "datasets_mib": 2 * GIB, PERSON: GIB}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("most", [{"datasets_mib": 1500}, {"person_storage_mib": 1500}])
def test_of_two_requests_at_once_one_gets_the_last_storage(cast: Cast, most: dict[str, int]) -> None:
    """Two people create a dataset; one creates a volume while the other hands them one."""
    volume = create(cast, cast.bob, name="theirs", kind="disk", size_mib=GIB)
    limit(cast, **most)

    def ask(number: int) -> str:
        actor = again((cast.alice, cast.bob)[number])
        try:
            if number and PERSON in most:
                changes.transfer(actor, changes.fresh(volume), "alice")
            else:
                create(cast, actor, size_mib=GIB)
        except Refusal as refusal:
            return refusal.code
        return "done"

    codes = {"datasets_mib": "above_datasets_limit", PERSON: "above_person_storage_limit"}
    assert sorted(at_once(ask, 2)) == sorted([codes[next(iter(most))], "done"])


def test_everybody_reads_the_limits_with_what_is_used_of_them(cast: Cast) -> None:
    limit(cast, homes_mib=20 * GIB, disks_mib=30 * GIB, datasets_mib=40 * GIB, person_storage_mib=50 * GIB)
    create(cast, size_mib=2 * GIB)
    create(cast, cast.bob, kind="disk", size_mib=3 * GIB)
    [found] = limits_for(cast.bob)
    assert found["datasets_mib"] == {"used": 2 * GIB, "limit": 40 * GIB}
    assert found["disks_mib"] == {"used": 3 * GIB, "limit": 30 * GIB}
    assert found[PERSON] == {"used": 3 * GIB, "limit": 50 * GIB}
    [answer] = browser(cast.bob).get("/api/v1/quotas/").json()["limits"]
    assert answer == found
    page = words(browser(cast.bob).get("/tenants/demo/"))
    shown = (
        "0 MiB of 20 GiB reserved",
        "3 GiB of 30 GiB",
        "2 GiB of 40 GiB",
        "3 GiB of 50 GiB that one person",
    )
    assert [text for text in shown if text not in page] == []
    form = words(browser(cast.bob).get("/launch/"))
    left = (
        "20 GiB of 20 GiB for homes",
        "27 GiB of 30 GiB for local disks",
        "47 GiB of 50 GiB storage of one",
    )
    assert [text for text in left if text not in form] == []


@pytest.mark.parametrize(
    ("name", "mib", "said"),
    [
        ("disks_mib", GIB, ["It uses 2.0 GiB for local disks"]),
        ("person_storage_mib", GIB, ["alice has 2.0 GiB of storage"]),
        ("person_storage_mib", 2 * GIB, []),
        ("homes_mib", 0, []),
    ],
)
def test_an_admin_who_lowers_a_limit_below_its_use_is_asked_first(
    cast: Cast, name: str, mib: int, said: list[str]
) -> None:
    create(cast, kind="disk", size_mib=2 * GIB)
    create(cast, cast.bob, kind="dataset", size_mib=GIB)
    limit(cast)
    row = TenantLimit.objects.get()
    path = f"/admin/quotas/tenantlimit/{row.pk}/change/"
    page = browser(cast.admin).post(path, {"tenant": str(row.tenant_id), name: mib // GIB})
    row.refresh_from_db()
    assert getattr(row, name) == (None if said else mib)
    assert [text for text in said if text not in text_of(page)] == []


def test_the_admins_list_shows_what_is_used_of_each_kind(cast: Cast) -> None:
    create(cast, kind="disk", size_mib=2 * GIB)
    limit(cast, disks_mib=8 * GIB)
    page = text_of(browser(cast.admin).get("/admin/quotas/tenantlimit/"))
    assert "2 of 8 GiB" in page and "0 GiB" in page
