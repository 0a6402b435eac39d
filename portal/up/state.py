"""The state directory of a trial: the one place it writes to, held by one `make up` at a time."""

import contextlib
import fcntl
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from portal.up.refusal import Refusal

# A unix socket's path may have 107 bytes; the longest name we put below the socket folder is PostgreSQL's.
LONGEST_SOCKET_FOLDER = 107 - len("/postgres/.s.PGSQL.5432")


class State:
    """Entries of the state directory. Each is private by itself, whatever the folder's mode."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run_file = folder / "run.env"
        self.logs = folder / "logs"
        self.mail = folder / "mail"  # mails that Berth would have sent, as files
        self.records = folder / "processes"  # one small file per running process, with pid and start time
        self.postgres = folder / "postgres"
        self.cluster = folder / "cluster"
        self.kubeconfig = folder / "kubeconfig"
        self.agent_token = folder / "agent-token"  # sent by the trial cluster's simulated agents
        self.image = folder / "image"

    @classmethod
    def make(cls, folder: Path) -> "State":
        """Create the folder. Root's can be passed through, not listed: database and pods have their own uids."""
        if not folder.exists():
            folder.mkdir(parents=True, mode=0o711 if os.geteuid() == 0 else 0o700)
        if folder.stat().st_uid != os.geteuid():
            raise Refusal(f"{folder} belongs to another account. Choose a BERTH_STATE_DIR of your own.")
        state = cls(folder.resolve())
        for private in (state.logs, state.mail, state.records):
            private.mkdir(mode=0o700, exist_ok=True)
        return state

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the state directory, or raise Refusal. The kernel frees a dead holder's lock, so it is never stale."""
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(lock, 32).decode().strip()
                raise Refusal(
                    f"Berth already runs on {self.folder} (pid {holder}). Use it, stop it with Ctrl-C in its "
                    "terminal, or choose another BERTH_STATE_DIR and PORT."
                ) from None
            os.ftruncate(lock, 0)
            os.write(lock, f"{os.getpid()}\n".encode())
            yield
        finally:
            os.close(lock)

    @contextlib.contextmanager
    def sockets(self) -> Iterator[Path]:
        """Yield a folder for unix sockets: in the state directory, or a temporary one if that path is too long."""
        folder = self.folder / "run"
        if len(os.fsencode(folder)) <= LONGEST_SOCKET_FOLDER:
            folder.mkdir(mode=0o711, exist_ok=True)
            yield folder
        else:
            with tempfile.TemporaryDirectory(prefix="berth-") as short:
                Path(short).chmod(0o711)
                yield Path(short)

    def read_run_file(self) -> dict[str, str]:
        if not self.run_file.is_file():
            return {}
        lines = self.run_file.read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))

    def write_run_file(self, values: Mapping[str, str]) -> None:
        """Replace run.env, which a `manage.py` in another terminal may be reading."""
        lines = [f"{key}={value}\n" for key, value in values.items()]
        write_private(
            self.run_file, "".join(["# Written by `make up`; `manage.py` reads it. Holds secrets.\n", *lines])
        )


def write_private(file: Path, text: str) -> None:
    """Write the file in one step: a reader gets the old text or the new one."""
    new = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)
    new.replace(file)
