"""The ledger of storage: what is written as volumes change, GiB-months from it, and who sees them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.access import Actor
from accounts.models import Tenant, User
from storage import changes, ledger
from storage.ledger import MICROSECOND, bounds
from storage.models import Phase, StorageSpan, Volume
from tests.admin_forms import text_of
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.parsed import csv_of

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
HOUR, MONTH, GIB = timedelta(hours=1), timedelta(hours=730), 1024
USAGE = "/api/v1/usage/"

# --- What is counted

times = st.datetimes(datetime(2026, 1, 1), datetime(2026, 3, 1), timezones=st.just(UTC))
stored = st.tuples(times, times | st.none(), st.integers(1, 10**6)).map(
    lambda span: (span[0], span[1] and max(span[0], span[1]), span[2])
)


def counted(spans: list[tuple[datetime, datetime | None, int]], begin: datetime, end: datetime) -> Fraction:
    """Return the GiB-months as they are defined: the sum of sizes times hours, divided by 730."""
    zero = timedelta()
    times = [(max(min(until or end, end) - max(since, begin), zero), mib) for since, until, mib in spans]
    return Fraction(sum(time // MICROSECOND * mib for time, mib in times), 1024 * 730 * 3600 * 10**6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # it begins with an empty ledger
@given(st.lists(stored, max_size=8), times, times, times, times)
def test_gib_months_are_sizes_by_time_and_add_up_over_days(
    cast: Cast, spans: list[Any], one: datetime, two: datetime, three: datetime, now: datetime
) -> None:
    StorageSpan.objects.all().delete()
    here = {"tenant": cast.demo, "user": cast.alice.user}
    StorageSpan.objects.bulk_create(
        StorageSpan(**here, volume=uuid4(), since=since, until=until, mib=mib) for since, until, mib in spans
    )
    first, middle, last = sorted(time.date() for time in (one, two, three))

    def found(first: date, last: date) -> Fraction:
        by_tenant = ledger.gib_months(Q(), first, last, ["tenant_id"], now)
        return by_tenant.get((cast.demo.pk,), Fraction(0))

    begin, end = bounds(first, last, now)
    assert found(first, last) == counted(spans, begin, end)
    if middle < last:
        assert found(first, middle) + found(middle + timedelta(days=1), last) == found(first, last)


@given(times, times, times)
def test_a_period_is_of_whole_days_and_never_ends_in_the_future(
    one: datetime, two: datetime, now: datetime
) -> None:
    first, last = sorted((one, two))
    begin, end = bounds(first.date(), last.date(), now)
    assert begin <= end <= max(begin, now)
    assert (begin.date(), begin.hour, begin.minute) == (first.date(), 0, 0)
    if end < now:
        assert end - timedelta(days=1) == datetime.combine(last.date(), datetime.min.time(), UTC)


# --- What the database writes


def entries(volume: Volume) -> list[tuple[str, str, int, bool]]:
    rows = StorageSpan.objects.filter(volume=volume.pk).order_by("pk")
    return [(one.tenant.slug, one.user.username, one.mib, one.until is None) for one in rows]


def create(cast: Cast, by: Actor | None = None, **wish: Any) -> Volume:
    wanted = {"name": "data", "kind": "dataset", "size_mib": GIB, **wish}
    return changes.create(by or cast.alice, "demo", changes.Wish(**wanted))


def test_each_size_and_owner_has_an_entry_until_the_volume_is_gone(cast: Cast) -> None:
    volume = create(cast)
    first = ("demo", "alice", GIB)
    assert entries(volume) == [(*first, True)]
    changes.change(cast.alice, volume, {"name": "other", "shared": "read"})
    changes.delete(cast.alice, changes.fresh(volume))
    changes.restore(cast.alice, changes.fresh(volume))
    assert entries(volume) == [(*first, True)]
    changes.change(cast.alice, changes.fresh(volume), {"size_mib": 2 * GIB})
    changes.transfer(cast.alice, changes.fresh(volume), "bob")
    past = [(*first, False), ("demo", "alice", 2 * GIB, False)]
    assert entries(volume) == [*past, ("demo", "bob", 2 * GIB, True)]
    # A driver that rounds up, by any statement that changes rows; the sum of what is requested and what is there.
    Volume.objects.update(size_mib=3 * GIB)
    Volume.objects.update(requested_mib=3 * GIB)
    past.append(("demo", "bob", 2 * GIB, False))
    assert entries(volume) == [*past, ("demo", "bob", 3 * GIB, True)]
    Volume.objects.update(deleted_at=timezone.now(), phase=Phase.DELETED)
    assert entries(volume) == [*past, ("demo", "bob", 3 * GIB, False)]
    rows = list(StorageSpan.objects.filter(volume=volume.pk).order_by("pk"))
    assert [one.until for one in rows[:-1]] == [one.since for one in rows[1:]]  # no gap, and no time twice


def test_a_change_that_is_undone_leaves_no_entry(cast: Cast) -> None:
    volume = create(cast)
    with pytest.raises(Exception, match="smaller"):
        changes.change(cast.alice, volume, {"size_mib": 64})
    assert len(entries(volume)) == 1


def test_rows_that_vanish_end_their_entries(cast: Cast) -> None:
    volume = create(cast)
    Volume.objects.filter(pk=volume.pk).delete()
    assert entries(volume) == [("demo", "alice", GIB, False)]


# --- What people see of it


def kept(tenant: Tenant, user: User, gib: int, since: datetime, until: datetime | None = None) -> UUID:
    one = StorageSpan.objects.create(
        volume=uuid4(), tenant=tenant, user=user, mib=gib * GIB, since=since, until=until
    )
    return one.volume


@pytest.fixture
def history(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Cast:
    """In demo 2 GiB-months of alice and 1 of bob, in second 5 of carol, all before today."""
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)
    for owner, tenant, gib in (
        (cast.alice, cast.demo, 146),
        (cast.bob, cast.demo, 73),
        (cast.carol, cast.second, 365),
    ):
        kept(tenant, owner.user, gib, NOW - 20 * HOUR, NOW - 10 * HOUR)
    return cast


def by(actor: Actor, group: str, **params: Any) -> dict[Any, float]:
    found = browser(actor).get(USAGE, {"group_by": group, **params}).json()
    rows = {row[group]: row["storage_gib_months"] for row in found["results"]}
    assert found["total"]["storage_gib_months"] == (pytest.approx(sum(rows.values())) if rows else 0)
    return rows


def test_a_gib_month_is_a_gib_for_730_hours(cast: Cast) -> None:
    kept(cast.demo, cast.alice.user, 3, NOW - 2 * MONTH, NOW - MONTH)
    days = ((NOW - 3 * MONTH).date(), NOW.date())
    assert ledger.gib_months(Q(), *days, ["tenant_id"], NOW) == {(cast.demo.pk,): Fraction(3)}


def test_who_sees_whose_storage(history: Cast) -> None:
    cast = history
    assert by(cast.alice, "user") == {"alice": 2, "bob": 1}
    assert by(cast.bob, "user") == {"bob": 1, None: 2}
    assert by(cast.victor, "user") == {None: 3}
    assert by(cast.victor, "tenant") == {"demo": 3}
    assert by(cast.carol, "tenant") == {"second": 5}
    assert by(cast.carol, "tenant", tenant="demo") == {}
    assert by(cast.admin, "user") == {"carol": 5, "alice": 2, "bob": 1}
    assert by(cast.bob, "tenant", user="alice") == {}
    assert by(cast.alice, "tenant", user="bob") == {"demo": 1}


def test_days_limit_what_counts_and_what_still_lasts_counts_up_to_now(history: Cast) -> None:
    cast = history
    yesterday, today = "2026-03-19", "2026-03-20"
    assert by(cast.alice, "user", to=yesterday) == {"alice": 1.6, "bob": 0.8}  # 16:00 to midnight
    assert by(cast.alice, "user", **{"from": today}) == {"alice": 0.4, "bob": 0.2}
    kept(cast.demo, cast.alice.user, 730, NOW - 5 * HOUR)
    assert by(cast.alice, "user", **{"from": today}) == {"alice": 5.4, "bob": 0.2}
    assert by(cast.alice, "user", **{"from": "2026-03-21", "to": "2026-03-22"}) == {}


@pytest.mark.parametrize("params", [{"group_by": "pool"}, {"group_by": "day"}, {"pool": "a100"}])
def test_storage_is_in_no_pool_and_goes_by_no_day(history: Cast, params: dict[str, str]) -> None:
    found = browser(history.alice).get(USAGE, params).json()
    assert (found["total"]["storage_gib_months"], found["results"]) == (None, [])
    assert "GiB-month" not in text_of(browser(history.alice).get("/usage/", params))


def test_the_page_and_the_table_have_storage_without_any_gpu(history: Cast) -> None:
    page = text_of(browser(history.alice).get("/usage/", {"group_by": "user"}))
    assert "GiB-month" in page
    assert [page.count(amount) for amount in (">2.00<", ">1.00<", ">3.00<")] == [1, 1, 1]
    table = browser(history.alice).get(USAGE, {"group_by": "user", "format": "csv"})
    assert csv_of(table) == [
        "user,allocated_gpu_hours,weighted_gpu_hours,used_gpu_hours,storage_gib_months",
        "alice,0.0000,0.0000,,2.0000",
        "bob,0.0000,0.0000,,1.0000",
    ]


def test_the_number_of_queries_does_not_grow(history: Cast) -> None:
    client = browser(history.admin)

    def counts() -> list[int]:
        found = []
        for address in (
            f"{USAGE}?group_by=user", "/usage/?group_by=user", "/api/v1/quotas/", "/admin/storage/storagespan/"
        ):  # fmt: skip
            with CaptureQueriesContext(connection) as captured:
                assert client.get(address).status_code == 200
            found.append(len(captured))
        return found

    counts()
    first = counts()
    for number in range(9):
        kept(history.demo, User.objects.create_user(f"p{number}"), 1, NOW - 5 * HOUR)
    assert counts() == first
