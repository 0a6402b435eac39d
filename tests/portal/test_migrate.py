"""A database of another version is refused before anything in it is changed."""

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder


@pytest.mark.django_db
def test_a_database_with_migrations_that_this_version_lacks_is_refused() -> None:
    MigrationRecorder(connection).record_applied("quotas", "0099_of_tomorrow")
    with pytest.raises(CommandError, match=r"another version of Berth: quotas\.0099_of_tomorrow"):
        call_command("migrate", verbosity=0)


@pytest.mark.django_db
def test_migrations_of_libraries_that_are_gone_are_ignored() -> None:
    MigrationRecorder(connection).record_applied("axes", "0001_initial")
    call_command("migrate", verbosity=0)
