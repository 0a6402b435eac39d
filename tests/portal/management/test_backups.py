"""A backup holds all of one moment, and what cannot be restored whole is refused before anything changes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import IO, Any, cast
from uuid import UUID

import psycopg
import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings

from accounts.models import Tenant, User
from portal.channel_layer import connection_parameters
from portal.management import backups
from storage.models import Volume
from tests.portal.isolation import make_stage
from tests.shared.log_rows import make_stream, write
from workloads.logs import partitions

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # The pool of the tests' own threads stays connected.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture
def taken(tmp_path: Path) -> Path:
    """A backup of a database in which everything has a row."""
    stage = make_stage()
    write(make_stream(stage.demo, UUID(stage.ids["workspace"]["id"]), "workspace"), ["began"])
    file = tmp_path / "berth.zip"
    call_command("backup", str(file))
    with (
        connection.cursor() as cursor
    ):  # threads of earlier tests may have left some: restore refuses to go on
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    return file


def all_rows() -> dict[str, list[str]]:
    with connection.cursor() as cursor:
        rows = {}
        for table in backups.columns(backups.cursor()):
            cursor.execute(f'SELECT t::text FROM "{table}" t ORDER BY 1')
            rows[table] = [row for (row,) in cursor.fetchall()]
    return rows


def test_what_was_lost_is_back_and_nothing_else(taken: Path) -> None:
    before, numbers = all_rows(), backups.sequences(backups.cursor())
    assert [
        table
        for table in (
            "quotas_quota",
            "storage_volume",
            "jobs_job",
            "accounts_auditentry",
            "workloads_logchunk",
        )
        if not before[table]
    ] == []
    volume = Volume.objects.earliest("created_at")
    Volume.objects.filter(pk=volume.pk).update(size_mib=10**6)  # its triggers write the ledger
    User.objects.create_user("of-tomorrow")
    Tenant.objects.create(slug="of-tomorrow", name="Tomorrow")
    assert all_rows() != before
    ContentType.objects.create(app_label="of", model="tomorrow")
    assert backups.sequences(backups.cursor()) != numbers

    partitions.drop_before(date.max)  # an empty database has no partition of logs
    call_command("restore", str(taken), "--replace")
    assert all_rows() == before
    assert backups.sequences(backups.cursor()) == numbers
    Volume.objects.filter(pk=volume.pk).update(size_mib=10**6)
    assert all_rows()["storage_storagespan"] != before["storage_storagespan"]  # triggers act again


def test_a_backup_is_readable_by_its_owner_only_and_replaces_the_older_one(taken: Path) -> None:
    assert taken.stat().st_mode & 0o777 == 0o600
    call_command("backup", str(taken))
    call_command("restore", str(taken), "--check")
    assert list(taken.parent.iterdir()) == [taken]


@pytest.mark.slow
def test_a_backup_that_cannot_be_written_leaves_the_older_one(
    taken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = taken.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backups, "write", full)
    with pytest.raises(CommandError, match="No space left"):
        call_command("backup", str(taken))
    assert list(taken.parent.iterdir()) == [taken]
    assert taken.read_bytes() == kept


@pytest.mark.slow
def test_what_must_not_happen_is_refused_and_said(taken: Path) -> None:
    before = all_rows()
    with pytest.raises(CommandError, match="--replace"):
        call_command("restore", str(taken))
    database = {**connection_parameters(), "dbname": connection.settings_dict["NAME"]}
    with psycopg.connect(**database), pytest.raises(CommandError, match="other connections use the database"):
        call_command("restore", str(taken), "--replace")
    another_key = override_settings(SECRET_KEY="x" * 50, SECRET_KEY_FALLBACKS=[])
    with another_key, pytest.raises(CommandError, match="BERTH_SECRET_KEY is not the one"):
        call_command("restore", str(taken), "--replace")
    with zipfile.ZipFile(taken) as archive:
        header = archive.getinfo("accounts_tenant")
    whole = taken.read_bytes()
    data = header.header_offset + 30 + len(header.filename) + 20  # a header, its name and what zip64 adds
    for damaged in (whole[: len(whole) // 2], whole[:data] + b"\0\0\0\0" + whole[data + 4 :]):
        taken.write_bytes(damaged)
        with pytest.raises(CommandError):
            call_command("restore", str(taken), "--replace")
    assert all_rows() == before


def without(table: str) -> Callable[[dict[str, bytes]], None]:
    return lambda members: void(members.pop(table))


def void(_: object) -> None:
    """Return None."""


def described(**changes: Any) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        members[backups.DESCRIPTION] = json.dumps(json.loads(members[backups.DESCRIPTION]) | changes).encode()

    return change


def emptied(table: str) -> Callable[[dict[str, bytes]], None]:
    return lambda members: members.update({table: b""})


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(without("jobs_job"), id="a table is missing"),
        pytest.param(without(backups.DESCRIPTION), id="no description"),
        pytest.param(described(migrations=["accounts.0001_initial"]), id="another version"),
        pytest.param(emptied("accounts_tenant"), id="rows refer to what is missing"),
        pytest.param(lambda members: members.update(jobs_job=b"not a row\n"), id="not what COPY wrote"),
    ],
)
def test_what_cannot_be_restored_whole_changes_nothing(
    taken: Path, change: Callable[[dict[str, bytes]], None]
) -> None:
    with zipfile.ZipFile(taken) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(taken, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    before = all_rows()
    with pytest.raises(CommandError):
        call_command("restore", str(taken), "--replace")
    assert all_rows() == before


@pytest.mark.slow
def test_a_stream_that_cannot_seek_will_do() -> None:
    class Pipe(io.RawIOBase):
        content = b""

        def writable(self) -> bool:
            return True

        def write(self, piece: Any) -> int:
            self.content += bytes(piece)
            return len(piece)

    make_stage()
    pipe = Pipe()
    backups.write(cast(IO[bytes], pipe))
    with zipfile.ZipFile(io.BytesIO(pipe.content)) as archive:
        assert backups.check(archive).tables == backups.columns(backups.cursor())
