"""A database of another version is refused before anything in it is changed."""

from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder

from portal.channel_layer import connection_parameters
from portal.management.commands import migrate
from portal.management.commands.migrate import unfit_database


@pytest.mark.django_db
def test_a_database_with_migrations_that_this_version_lacks_is_refused() -> None:
    MigrationRecorder(connection).record_applied("quotas", "0099_of_tomorrow")
    with pytest.raises(CommandError, match=r"another version of Berth: quotas\.0099_of_tomorrow"):
        call_command("migrate", verbosity=0)


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
