"""A database of another version is refused before anything in it is changed."""

import io
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.functions import Now

from devcluster.testing.waiting import until
from portal.channel_layer import connection_parameters
from portal.environment import BASE_DIR
from portal.management.commands import migrate
from portal.management.commands.migrate import unfit_database
from vitals.models import Process, Release
from vitals.pulse import beat
from vitals.release import OLDEST, RELEASE


@pytest.mark.django_db
def test_a_database_with_migrations_that_this_version_lacks_is_refused() -> None:
    MigrationRecorder(connection).record_applied("quotas", "0099_of_tomorrow")
    with pytest.raises(CommandError, match=r"another version of Berth: quotas\.0099_of_tomorrow"):
        call_command("migrate", verbosity=0)


@pytest.mark.django_db
def test_a_newer_database_is_left_as_it_is_if_it_takes_this_release() -> None:
    MigrationRecorder(connection).record_applied("quotas", "0099_of_tomorrow")
    row = {"number": RELEASE + 1, "oldest": RELEASE}
    Release.objects.update_or_create(pk=1, defaults=row)
    call_command("migrate", verbosity=0)
    assert Release.objects.values("number", "oldest").get() == row
    Release.objects.update(oldest=RELEASE + 1)
    with pytest.raises(CommandError, match="another version of Berth"):
        call_command("migrate", verbosity=0)


@pytest.mark.django_db
def test_it_writes_which_releases_the_tables_take() -> None:
    Release.objects.all().delete()
    call_command("migrate", verbosity=0)
    assert Release.objects.values("number", "oldest").get() == {"number": RELEASE, "oldest": OLDEST}


@pytest.mark.django_db
def test_parts_that_the_new_tables_do_not_take_have_to_end_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "OLDEST", 3)
    Process.objects.create(part="web", host="h", pid=1, seen_at=Now(), release=3)
    Process.objects.create(part="worker", host="h", pid=2, seen_at=Now() - timedelta(seconds=60), release=2)
    assert migrate.parts_left_behind("default") == ""
    beat("watcher")  # of this release
    assert f"watcher (release {RELEASE})" in migrate.parts_left_behind("default")
    MigrationRecorder(connection).record_unapplied("quotas", "0001_initial")
    with pytest.raises(CommandError, match="one release at a time"):
        call_command("migrate", verbosity=0)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_migration_that_waits_for_a_table_lets_others_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", "300ms")
    monkeypatch.setattr(migrate, "PAUSE_SECONDS", 0.1)
    call_command("migrate", "vitals", "0001_initial", verbosity=0)

    def forward() -> None:
        call_command("migrate", verbosity=0, stderr=told)
        connection.close()

    told = io.StringIO()
    try:
        with ThreadPoolExecutor(1) as pool, psycopg.connect(**connection_parameters()) as reader:
            reader.execute("SELECT count(*) FROM vitals_process")  # its transaction goes on
            done = pool.submit(forward)
            until(lambda: told.getvalue() or done.done())
            with psycopg.connect(**connection_parameters()) as other:
                other.execute("SET statement_timeout = '20s'")
                other.execute("SELECT count(*) FROM vitals_process")
            assert not done.done()
            reader.rollback()
            done.result()
    finally:
        call_command("migrate", verbosity=0)
    assert Release.objects.exists()


def test_the_chart_says_the_release() -> None:
    [version] = re.findall(r'(?m)^appVersion: "(\d+)"$', (BASE_DIR / "deploy/chart/Chart.yaml").read_text())
    assert int(version) == RELEASE
    assert RELEASE - 1 <= OLDEST <= RELEASE


@pytest.mark.django_db
def test_migrations_of_libraries_that_are_gone_are_ignored() -> None:
    MigrationRecorder(connection).record_applied("axes", "0001_initial")
    call_command("migrate", verbosity=0)


def test_a_database_that_cannot_hold_all_names_is_refused(django_db_blocker: Any) -> None:
    with django_db_blocker.unblock(), psycopg.connect(**connection_parameters(), autocommit=True) as server:
        server.execute("CREATE DATABASE in_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
        try:
            other = {**connections["default"].settings_dict, "NAME": "in_ascii"}
            connections["in_ascii"] = DatabaseWrapper(other, "in_ascii")
            assert "CREATE DATABASE berth ENCODING 'UTF8'" in unfit_database("in_ascii")
        finally:
            connections["in_ascii"].close()
            del connections["in_ascii"]
            server.execute("DROP DATABASE in_ascii")


@pytest.mark.django_db
def test_a_database_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "OLDEST_POSTGRESQL", 99)
    with pytest.raises(CommandError, match="Berth needs 99 or newer"):
        call_command("migrate", verbosity=0)
