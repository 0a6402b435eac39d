"""The audit trail by month: entries find their table, old months go, and nothing is lost while tables change."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import OrmQ

from accounts.models import AuditEntry
from accounts.trail import audit, keeping, partitions
from accounts.trail.partitions import FIRST, LAST, TRAIL, Partition, month_of
from portal.apps import keep_trail
from tests.accounts.people import People
from tests.shared.clients import api, ask, browser
from tests.shared.concurrency import elsewhere

# The database takes no other months than those around its own time.
NOW = month_of(timezone.now()) + timedelta(days=16, hours=12)
BEFORE = ("accounts", "0001_initial")


@pytest.fixture
def immediate(db: None) -> None:
    """Check foreign keys at each statement: PostgreSQL changes no table that has checks waiting in the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    begin_at(month_of(NOW, -30))


@pytest.fixture
def as_migrated(transactional_db: None, settings: Any) -> Iterator[None]:
    """Keep all entries; afterwards restore the partitions that a migration makes, for the tests after this one."""
    settings.TRAIL_MONTHS = 0
    begin_at(month_of(NOW, -30))
    yield
    AuditEntry.objects.all().delete()
    migrate(BEFORE)
    migrate()


def begin_at(moment: datetime) -> None:
    """Leave the trail as if Berth had been installed at the moment, and no month had been made since."""
    with connection.cursor() as cursor:
        for one in partitions.partitions():
            cursor.execute(f"DROP TABLE {one.name}")
        for name, bounds in ((FIRST, f"(MINVALUE) TO ('{moment}')"), (LAST, f"('{moment}') TO (MAXVALUE)")):
            cursor.execute(
                f"CREATE TABLE {name} PARTITION OF {TRAIL} (PRIMARY KEY (id)) FOR VALUES FROM {bounds}"
            )


def migrate(target: tuple[str, str] | None = None) -> None:
    """Migrate back to one of accounts' migrations, with what depends on later ones, or forward to the last of all."""
    executor = MigrationExecutor(connection)
    executor.migrate([target] if target else executor.loader.graph.leaf_nodes())


def written(at: datetime, action: str = "test") -> AuditEntry:
    entry = audit.record(None, action)
    AuditEntry.objects.filter(pk=entry.pk).update(at=at)
    return entry


def place_of(entry: AuditEntry) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT tableoid::regclass::text FROM {TRAIL} WHERE id = %s", [entry.pk])
        (name,) = cursor.fetchone()
        return str(name).removeprefix(f"{TRAIL}_")


def assert_all_of_time_is_covered() -> None:
    found = partitions.partitions()
    assert (found[0].name, found[0].since) == (FIRST, None)
    assert (found[-1].name, found[-1].until) == (LAST, None)
    assert [one.until for one in found[:-1]] == [one.since for one in found[1:]]


@pytest.mark.parametrize(
    ("moment", "after", "month"),
    [
        (datetime(2026, 12, 31, 23, 59, tzinfo=UTC), 0, datetime(2026, 12, 1, tzinfo=UTC)),
        (datetime(2026, 12, 31, tzinfo=UTC), 1, datetime(2027, 1, 1, tzinfo=UTC)),
        (datetime(2027, 1, 31, tzinfo=UTC), -1, datetime(2026, 12, 1, tzinfo=UTC)),
        (datetime(2027, 1, 31, tzinfo=UTC), -25, datetime(2024, 12, 1, tzinfo=UTC)),
    ],
)
def test_months_are_counted_across_years(moment: datetime, after: int, month: datetime) -> None:
    assert month_of(moment, after) == month


def test_entries_land_in_the_table_of_their_month(immediate: None) -> None:
    partitions.make_months(NOW)
    for month in range(1, 4):
        assert place_of(written(month_of(NOW, month))) == f"{month_of(NOW, month):%Y_%m}"
    assert place_of(written(month_of(NOW, 4) - timedelta(microseconds=1))) == f"{month_of(NOW, 3):%Y_%m}"
    assert_all_of_time_is_covered()


def test_an_entry_of_any_time_finds_its_place(immediate: None) -> None:
    partitions.make_months(NOW)
    assert place_of(written(datetime(1999, 1, 1, tzinfo=UTC))) == "first"
    assert place_of(written(datetime(2099, 1, 1, tzinfo=UTC))) == "last"
    assert AuditEntry.objects.filter(action="test").count() == 2


def test_what_nobody_made_a_table_for_gets_one_later(immediate: None) -> None:
    """The worker was away for years: all was written into the last table, some by a clock that was fast."""
    late = [written(month_of(NOW, -month)) for month in range(3)]
    fast = written(month_of(NOW, 40))
    assert {place_of(entry) for entry in [*late, fast]} == {"last"}
    partitions.make_months(NOW)
    assert len({place_of(entry) for entry in late}) == 1
    assert place_of(late[0]) not in ("last", "first")
    assert place_of(fast) == "last"
    assert_all_of_time_is_covered()
    next_month = month_of(NOW, 1)
    partitions.make_months(next_month)
    assert place_of(fast) == "last"
    assert AuditEntry.objects.filter(action="test").count() == 4
    assert_all_of_time_is_covered()


def test_nothing_changes_when_all_tables_are_there(immediate: None) -> None:
    partitions.make_months(NOW)
    found = partitions.partitions()
    partitions.make_months(NOW + timedelta(days=1))
    assert partitions.partitions() == found


def test_dropping_takes_exactly_the_old_months_and_says_so(immediate: None, settings: Any) -> None:
    settings.TRAIL_MONTHS = 2
    begin = month_of(NOW, -6)
    partitions.make_months(begin)
    for month in range(6):
        partitions.make_months(month_of(begin, month))
    entries = {month: written(month_of(NOW, -month)) for month in range(6)}
    keeping.keep(NOW)
    kept = AuditEntry.objects.filter(action="test")
    assert set(kept.values_list("pk", flat=True)) == {entries[month].pk for month in (0, 1, 2)}
    told = AuditEntry.objects.filter(action="trail.forgotten").order_by("pk")
    assert [(entry.data["since"], entry.data["until"], entry.data["entries"]) for entry in told] == [
        (str(month_of(NOW, -month).date()), str(month_of(NOW, 1 - month).date()), 1) for month in (5, 4, 3)
    ]
    assert {entry.data["months"] for entry in told} == {2}
    assert_all_of_time_is_covered()
    keeping.keep(NOW)
    assert told.count() == 3
    keeping.keep(month_of(NOW, 1))
    assert entries[2].pk not in kept.values_list("pk", flat=True)
    assert_all_of_time_is_covered()


def test_an_old_time_that_comes_late_is_forgotten_too(immediate: None, settings: Any) -> None:
    settings.TRAIL_MONTHS = 2
    partitions.make_months(NOW)
    keeping.keep(NOW)
    written(datetime(2000, 1, 1, tzinfo=UTC))
    keeping.keep(NOW)
    assert not AuditEntry.objects.filter(action="test").exists()


def test_a_tick_once_an_hour_enqueues_the_upkeep(immediate: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, count in ((3599.0, 0), (3603.0, 1), (3609.0, 1)):
        monkeypatch.setattr("clusters.watch.ticks.time.time", lambda seconds=seconds: seconds)
        keep_trail()
        assert OrmQ.objects.count() == count
    (queued,) = OrmQ.objects.all()
    monkeypatch.undo()
    import_string(json.loads(queued.payload)["func"])()
    assert partitions.partitions()[-1].since == month_of(timezone.now(), partitions.AHEAD + 1)


@pytest.mark.parametrize(
    "call",
    [
        "drop_before(now())",
        "drop_before(now() - interval '26 days')",
        "drop_before('infinity')",
        "drop_before(NULL)",
        "make_months(date_trunc('month', now()) + interval '3 months', 3)",
        "make_months(date_trunc('month', now()), 25)",
        "make_months(date_trunc('month', now()), -1)",
        "make_months(date_trunc('month', now()) - interval '1 day', 3)",
        "make_months(NULL, 3)",
    ],
)
def test_nobody_drops_the_newest_entries_or_makes_odd_months(immediate: None, call: str) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        partitions.execute(f"SELECT accounts_trail_{call}")


def test_zero_keeps_all_for_ever(immediate: None, settings: Any) -> None:
    settings.TRAIL_MONTHS = 0
    written(datetime(1999, 1, 1, tzinfo=UTC))
    keeping.keep(NOW)
    assert AuditEntry.objects.filter(action="test").count() == 1


def test_a_page_of_the_newest_reads_few_tables(immediate: None) -> None:
    begin = month_of(NOW, -24)
    partitions.make_months(begin)
    for month in range(25):
        partitions.make_months(month_of(begin, month))
    AuditEntry.objects.bulk_create(AuditEntry(action="test", data={"n": n}) for n in range(2500))
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {TRAIL} SET at = %s - make_interval(days => (data->>'n')::int %% 730)", [NOW])
        cursor.execute(f"ANALYZE {TRAIL}")
        page = str(AuditEntry.objects.order_by("-at", "-id")[:51].query)
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {page}")
        plan = cursor.fetchone()[0]
    plan = json.loads(plan) if isinstance(plan, str) else plan
    read = [node for node in nodes(plan[0]["Plan"]) if "Relation Name" in node and node["Actual Loops"]]
    with_rows = [node for node in read if node["Actual Rows"]]
    assert len(partitions.partitions()) > 25
    assert 1 <= len(with_rows) <= 2
    assert len(read) <= partitions.AHEAD + 1 + 2  # the empty ones of months to come are looked at too


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


def test_pages_export_and_admin_read_across_months(people: People) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    begin_at(month_of(NOW, -30))
    partitions.make_months(NOW)
    for month in range(3):
        written(month_of(NOW, month), f"month.{month}")
    script = api(people.admin)
    first = ask(script, "GET", "audit/?action=month&limit=2").json()
    second = script.get(first["next"]).json()
    assert [row["action"] for row in first["results"] + second["results"]] == [
        "month.2",
        "month.1",
        "month.0",
    ]
    newest = AuditEntry.objects.get(action="month.2")
    assert browser(people.admin).get(f"/admin/accounts/auditentry/{newest.pk}/change/").status_code == 200
    assert browser(people.admin).get(f"/admin/accounts/auditentry/?at__year={NOW.year}").status_code == 200


@pytest.mark.slow
@pytest.mark.usefixtures("as_migrated")
def test_indexes_and_foreign_keys_are_the_same_after_both_ways() -> None:
    before = shape()
    migrate(BEFORE)
    plain = shape()
    migrate()
    assert shape() == before
    assert {name for name, _columns in before} >= {"audit_of_one_thing", "audit_newest_of_tenant"}
    assert [columns for _name, columns in plain if columns != ["id"]] == [
        columns for _name, columns in before
    ]


def shape() -> list[tuple[str, list[str]]]:
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, TRAIL)
    return sorted(
        (name, it["columns"])
        for name, it in found.items()
        if it["index"] or it["foreign_key"] or it["primary_key"]
    )


@pytest.mark.slow
@pytest.mark.usefixtures("as_migrated")
def test_entries_that_are_written_while_tables_change_are_not_lost() -> None:
    stop = threading.Event()
    numbers: list[int] = []

    def write() -> None:
        while not stop.is_set():
            numbers.append(audit.record(None, "test").pk)

    writer = elsewhere(write)
    try:
        for month in range(-11, 1):
            keep_until_done(month_of(NOW, month))
    finally:
        stop.set()
        writer.join()
    assert len(numbers) > 12
    assert set(AuditEntry.objects.filter(action="test").values_list("pk", flat=True)) == set(numbers)
    assert_all_of_time_is_covered()


def keep_until_done(now: datetime) -> None:
    """Call the upkeep as every hour does: it gives way to a busy trail."""
    for _ in range(50):
        keeping.keep(now)
        if partitions.partitions()[-1].since == month_of(now, partitions.AHEAD + 1):
            return
    raise AssertionError("the trail was busy each time")


@pytest.mark.slow
@pytest.mark.usefixtures("as_migrated")
def test_the_upkeep_waits_shortly_and_changes_nothing_while_the_trail_is_in_use() -> None:
    found: list[Partition] = partitions.partitions()
    written_one, go_on = threading.Event(), threading.Event()

    def write_slowly() -> None:
        with transaction.atomic():
            audit.record(None, "test")
            written_one.set()
            go_on.wait(60)

    writer = elsewhere(write_slowly)
    try:
        assert written_one.wait(60)
        keeping.keep(NOW)
        assert partitions.partitions() == found
    finally:
        go_on.set()
        writer.join()
    keeping.keep(NOW)
    assert partitions.partitions()[-1].since == month_of(NOW, partitions.AHEAD + 1)
    assert AuditEntry.objects.filter(action="test").count() == 1
