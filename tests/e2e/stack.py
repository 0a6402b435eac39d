"""A whole Berth for tests, started as `make up` starts it: `python -m portal.up` on a state directory of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from configparser import ConfigParser
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from environ import Env
from kubernetes import config
from psycopg.rows import dict_row

from portal.up import leftovers
from portal.up.plan import REPOSITORY
from portal.up.state import State
from tests.e2e.prepared import copy_prepared
from tests.shared.ports import free_port

if TYPE_CHECKING:
    from clusters.transport import Transport

PASSWORD = "a-password-for-tests"
READY_SECONDS = 240  # on a busy machine; about 10 on a quiet one
STOPPED_SECONDS = 120
T = TypeVar("T")


def until(what: str, look: Callable[[], T], seconds: float = 60, pause: float = 0.1) -> T:
    """Return the first true answer of `look`; raise AssertionError if none comes in time."""
    deadline = time.monotonic() + seconds
    while True:
        answer = look()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds:g} s; last seen: {answer!r}")
        time.sleep(pause)


class Stack:
    """A Berth in its own state directory, which tests start, stop, kill and query."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder, self.repository = folder, REPOSITORY
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        hidden = (
            "DATABASE_URL",
            "KUBECONFIG",
            "DJANGO_SETTINGS_MODULE",
            "BERTH_PLAIN_STATIC",
            "BERTH_ALLOWED_HOSTS",
        )
        inherited = {k: v for k, v in os.environ.items() if k not in hidden and not k.startswith("BERTH_")}
        self.environ = inherited | {
            "PORT": str(self.port),
            "BERTH_SSH_JUMP_PORT": str(free_port()),  # the usual one may be another stack's
            "BERTH_STATE_DIR": str(folder),
            "BERTH_DEMO_PASSWORD": PASSWORD,
            **settings,
        }
        folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        image = folder / "image"
        if not image.exists():
            image.symlink_to(REPOSITORY / ".dev" / "image")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start Berth; return the seconds until /readyz answered 200."""
        if self.repository == REPOSITORY:  # another version migrates by itself
            copy_prepared(self.folder)
        began = time.monotonic()
        with (self.folder / "up.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "portal.up"],
                cwd=self.repository,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until("ready", self.is_ready, READY_SECONDS)
        return time.monotonic() - began

    def is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"it ended: {(self.folder / 'up.log').read_text()[-2000:]}"
        try:
            with urllib.request.urlopen(f"{self.address}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> float:
        """Stop Berth as Ctrl-C does; return the seconds until everything has stopped."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(STOPPED_SECONDS)
        return time.monotonic() - began

    def pid(self, part: str) -> int:
        """Process id of a part's main process: postgres, cluster, worker, watcher, web."""
        found = leftovers.recorded(self.folder / "processes", part)
        assert found is not None, f"{part} does not run"
        return found.pid

    def runs(self, part: str) -> bool:
        return leftovers.recorded(self.folder / "processes", part) is not None

    def kill(self, part: str) -> None:
        """Kill a part and its child processes with SIGKILL; supervisor restarts it."""
        self.about_to_kill(part)()

    def about_to_kill(self, *parts: str) -> Callable[[], None]:
        """Find the processes first, which takes longer than some moments last; return a function that kills them."""
        found = [process for part in parts for process in leftovers.marked(self.folder, part)]

        def kill() -> None:
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)

        return kill

    def supervise(self, verb: str, part: str) -> None:
        """Let supervisor start or stop a part of the portal: one that is stopped stays so."""
        conf = ConfigParser()
        conf.read(self.folder / "supervisord.conf")
        address = f"unix://{conf['unix_http_server']['file']}"
        command = [sys.executable, "-m", "supervisor.supervisorctl", "-s", address, verb, f"portal:{part}"]
        subprocess.run(command, check=True, capture_output=True, timeout=60)

    def kill_everything(self) -> None:
        """Kill every process of this state directory as a power loss would, `make up` itself first."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.about_to_kill(
            "supervisor", "web", "worker", "watcher", "collector", "ssh-jump", "cluster", "postgres"
        )()

    def manage(self, *arguments: str) -> str:
        """Run a management command; return its output."""
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=self.repository, env=self.environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def token(self, user: str, *scopes: str) -> str:
        return self.manage("issue_token", user, "--scopes", *scopes).strip().splitlines()[-1]

    def transport(self) -> Transport:
        """Return a connection to the cluster as its admin."""
        from clusters.transport import Transport  # needs Django's settings

        client = config.new_client_from_config(str(self.folder / "kubeconfig"))  # type: ignore[no-untyped-call]
        return Transport(client)

    def in_cluster(self, kind: str, **labels: str) -> list[dict[str, Any]]:
        """Objects of a kind in all namespaces of the cluster."""
        from clusters.api import Api

        return Api(self.transport()).list(kind, labels=labels)

    # --- faults of the trial cluster, as in packages/devcluster/docs/reference.md

    def fault(self, **spec: Any) -> int:
        """Switch a fault on; return its number."""
        return int(self.transport().request("POST", "/_faults", body=spec, repeatable=False)["id"])

    def end_faults(self, *numbers: int) -> None:
        """End these faults, or all if none is named."""
        transport = self.transport()
        for path in [f"/_faults/{number}" for number in numbers] or ["/_faults"]:
            transport.request("DELETE", path)

    def hits(self) -> dict[int, int]:
        """Number of calls that met each active fault, by fault; a held call counts."""
        faults = self.transport().request("GET", "/_faults")["faults"]
        return {fault["id"]: fault["hits"] for fault in faults}

    # --- rows

    @contextmanager
    def database(self, *, read_only: bool = True) -> Iterator[psycopg.Connection[dict[str, Any]]]:
        """Open a connection on which each statement is a transaction, unless the caller opens one."""
        found = Env.db_url_config(State(self.folder).read_run_file()["DATABASE_URL"])
        parts = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
        given = {name: found[key] for name, key in parts.items() if found[key]}
        options = f"-c default_transaction_read_only={'on' if read_only else 'off'}"
        with psycopg.connect(**given, options=options, autocommit=True, row_factory=dict_row) as connection:
            yield connection

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """Rows that a SELECT returns."""
        with self.database() as connection:
            return connection.execute(query.encode(), values or None).fetchall()

    def client(self, token: str) -> Client:
        return Client(self.address, token)


@contextmanager
def running(name: str, **settings: str) -> Iterator[Stack]:
    """Run a Berth in a temporary folder that its pods' users can enter."""
    with tempfile.TemporaryDirectory(prefix=f"berth-{name}-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        stack = Stack(Path(folder) / "state", **settings)
        stack.start()
        try:
            yield stack
        finally:
            stack.stop()


class Client:
    """REST API with a token; answers are (status, JSON)."""

    def __init__(self, address: str, token: str) -> None:
        self.address, self.token = address, token

    def __call__(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        request = urllib.request.Request(
            path if path.startswith("http") else f"{self.address}/api/v1/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
                **(headers or {}),
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def everything(self, path: str) -> list[Any]:
        """Return the results of all pages of a list."""
        found: list[Any] = []
        following: str | None = path
        while following:
            status, page = self("GET", following)
            assert status == 200, page
            found += page["results"]
            following = page["next"]
        return found
