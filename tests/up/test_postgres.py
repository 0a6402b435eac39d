"""Tests of the bundled PostgreSQL: reached only by socket, and only by its own account."""

import os
import stat
from pathlib import Path

import environ
import psycopg
import pytest
from django.db import connection

from portal.up.postgres import SERVER_UID, Server, may_enter


@pytest.mark.parametrize("folder", ["/srv/berth/run", "/srv/my berth/50% + more/run"])
def test_the_address_leads_to_the_socket_whatever_the_folder_is_called(folder: str) -> None:
    found = environ.Env.db_url_config(Server(Path("/data"), Path(folder)).url)
    assert (found["HOST"], found["USER"], found["NAME"]) == (folder, "berth", "berth")


def test_a_closed_folder_on_the_way_is_noticed(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir(mode=0o755)
    tmp_path.chmod(0o700)
    assert not may_enter(SERVER_UID, inner)
    assert may_enter(os.geteuid(), tmp_path)


@pytest.mark.skipif(
    "berth-tests-" not in os.environ.get("DATABASE_URL", ""), reason="another PostgreSQL was given"
)
class TestServer:
    """Checks of the server that these tests run on."""

    @pytest.fixture
    def sockets(self) -> Path:
        return Path(connection.settings_dict["HOST"])

    def test_it_listens_on_no_network(self, db: None) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SHOW listen_addresses")
            assert cursor.fetchone() == ("",)

    def test_its_socket_folder_is_private(self, sockets: Path) -> None:
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700

    def test_the_portal_is_no_superuser_there(self, db: None) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
            assert cursor.fetchone() == (False,)

    def test_nobody_is_let_in_on_a_name_that_the_account_does_not_have(self, sockets: Path) -> None:
        with pytest.raises(psycopg.OperationalError, match="Peer authentication failed"):
            psycopg.connect(host=str(sockets), user="somebody", dbname="postgres")

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another account for it")
    def test_it_does_not_run_as_root(self, sockets: Path) -> None:
        assert (sockets / ".s.PGSQL.5432").stat().st_uid == SERVER_UID
