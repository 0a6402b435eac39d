"""Database of the tests: a PostgreSQL server of their own, or the one that DATABASE_URL names.

Django's settings need its address, so a hook starts the server, not a fixture. Under xdist the controller starts
it once, and the workers inherit its address.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import django
import psycopg
import pytest
from django.conf import settings

from portal.up.postgres import ROLE, Server
from tests.e2e.prepared import FOLDER as PREPARED
from tests.proof import table

SETTINGS = {
    "DJANGO_SETTINGS_MODULE": "portal.settings",
    "BERTH_TRIAL": "1",
    "BERTH_SECRET_KEY": "only-for-tests-" + "0" * 50,
    "BERTH_PLAIN_STATIC": "1",
    "BERTH_BASE_URL": "http://testserver",
    "BERTH_ALLOWED_HOSTS": "testserver,127.0.0.1,localhost",
}
# Tests see neither a real cluster nor the settings of somebody's `make up`.
HIDDEN = (
    "KUBECONFIG",
    "BERTH_ROLE",
    "BERTH_DEMO_PASSWORD",
    "BERTH_DRIVER_FOLDERS",
    "BERTH_LDAP_URL",
    "BERTH_OIDC_ISSUER",
    "BERTH_STAFF_SECOND_FACTOR",
    "BERTH_METRICS_TOKEN",
)
SERVER = pytest.StashKey[subprocess.Popen[bytes]]()
FOLDER = pytest.StashKey[Path]()
# Durability is off: the data is thrown away.
UNSAFE = ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        _start_database(config)
    django.setup()  # now that its settings can be read
    # Production hashers are slow on purpose.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    from django.test import TransactionTestCase

    from tests.emptying import delete_all_rows

    pytest.MonkeyPatch().setattr(TransactionTestCase, "_fixture_teardown", delete_all_rows)
    if path := os.environ.get("BERTH_RECORD_RIGHTS"):
        from tests.deploy import used_rights

        config.add_cleanup(used_rights.record(Path(path)).save)
    path, as_parts = os.environ.get("BERTH_RECORD_TABLES"), bool(os.environ.get("BERTH_AS_PARTS"))
    if path or as_parts:
        from tests.deploy import used_tables

        config.add_cleanup(used_tables.record(Path(path) if path else None, as_parts=as_parts).save)


def _start_database(config: pytest.Config) -> None:
    for name in HIDDEN:
        os.environ.pop(name, None)
    os.environ.update(SETTINGS)
    folder = config.stash[FOLDER] = Path(tempfile.mkdtemp(prefix="berth-tests-"))
    folder.chmod(0o711)
    os.environ["BERTH_STATE_DIR"] = str(folder / "state")
    os.environ[PREPARED] = str(folder / "prepared")
    (folder / "state" / "collected").mkdir(parents=True)  # where static files would be
    if "DATABASE_URL" not in os.environ:
        server = Server(folder / "postgres", folder / "run")
        server.prepare()
        _let_parts_in(folder / "postgres" / "pg_ident.conf")
        with (folder / "postgres.log").open("wb") as log:
            command = [*server.command(), *UNSAFE]
            config.stash[SERVER] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        server.wait_until_ready(120)
        server.ensure_database()
        _make_accounts_of_parts(server)
        os.environ["DATABASE_URL"] = server.url


def _let_parts_in(names: Path) -> None:
    """Let whoever runs the tests connect with the account of each part (portal/management/rights.py)."""
    first = names.read_text().splitlines()[0]
    with names.open("a") as file:
        file.writelines(first.replace(" postgres", f" {account}") + "\n" for account in _accounts_of_parts())


def _make_accounts_of_parts(server: Server) -> None:
    """Make the accounts, whose rights the test database's migration then grants. The owner may act as each."""
    with psycopg.connect(
        host=str(server.sockets), user="postgres", dbname="postgres", autocommit=True
    ) as connection:
        for account in _accounts_of_parts():
            connection.execute(f"CREATE ROLE {account} LOGIN")
            connection.execute(f"GRANT {account} TO {ROLE}")


def _accounts_of_parts() -> list[str]:
    from portal.management.rights import PARTS, account_of

    return [account_of(ROLE, part) for part in PARTS]


def pytest_unconfigure(config: pytest.Config) -> None:
    if server := config.stash.get(SERVER, None):
        server.send_signal(signal.SIGINT)
        server.wait(60)
    if folder := config.stash.get(FOLDER, None):
        shutil.rmtree(folder)


@pytest.fixture
def found(record_property: Callable[[str, object], None]) -> Callable[[str, str], None]:
    """Function found(case, outcome), which adds a row to the table at the end of the run."""
    return lambda case, what: record_property(table.PROPERTY, (case, what))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [
        report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])
    ]
    if lines := list(table.lines(table.rows(reports))):
        terminalreporter.section("what the proof found")
        for line in lines:
            terminalreporter.write_line(line)
