"""Two PostgreSQL servers, a primary and its synchronous standby: what one of them acknowledged, the other has."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psycopg

from portal.up.postgres import DATABASE, HBA, ROLE, SERVER_UID, Server, as_server, binaries
from tests.e2e.prepared import copy_prepared
from tests.e2e.stack import until

# The folder of a server's socket is private: who may enter it may copy the server. Its own account has no name, which
# `peer` asks for.
REPLICATING = f"local replication postgres trust\n{HBA}"
UNSAFE = ("-c", "fsync=off", "-c", "full_page_writes=off")  # processes are killed here, machines are not
STREAMS = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'"


class Pair:
    def __init__(self, folder: Path) -> None:
        self.first, self.second = (Server(folder / name / "postgres", folder / name) for name in ("a", "b"))
        self._folder = folder
        self._running = ExitStack()
        self.primary: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        hosts = ",".join(quote(str(server.sockets), safe="") for server in (self.first, self.second))
        return f"postgres://{ROLE}@{hosts}/{DATABASE}"

    def start(self) -> None:
        for server in (self.first, self.second):
            server.sockets.mkdir(mode=0o700)
            if os.geteuid() == 0:
                os.chown(server.sockets, SERVER_UID, SERVER_UID)
        copy_prepared(self.first.sockets)
        self.first.prepare()
        (self.first.data / "pg_hba.conf").write_text(REPLICATING)
        self.primary = self._run(
            self.first, "-c", "synchronous_standby_names=*", "-c", "synchronous_commit=local"
        )
        self.first.ensure_database()
        self._copy()
        self._run(self.second)
        with asked(self.first) as primary:
            until("the standby streams", lambda: primary.execute(STREAMS).fetchone())
            primary.execute("ALTER DATABASE berth SET synchronous_commit = on")

    def _copy(self) -> None:
        """Copy the primary as a standby that follows it."""
        command = [
            str(binaries() / "pg_basebackup"),
            "--username=postgres",
            f"--host={self.first.sockets}",
            "-X",
            "stream",
        ]
        words = [
            *as_server(SERVER_UID, self._folder),
            *command,
            "-R",
            "-c",
            "fast",
            "-D",
            str(self.second.data),
        ]
        subprocess.run(words, check=True, cwd="/")

    def _run(self, server: Server, *settings: str) -> subprocess.Popen[bytes]:
        log = self._running.enter_context((self._folder / f"{server.sockets.name}.log").open("wb"))
        command = [*server.command(), *UNSAFE, *settings]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self._running.callback(end, process, signal.SIGQUIT)
        server.wait_until_ready(120)
        return process

    def kill_primary(self) -> None:
        """Kill the primary and all of its sessions with SIGKILL, as the loss of its machine would."""
        assert self.primary is not None
        sessions = children(self.primary.pid)
        end(self.primary, signal.SIGKILL)
        for pid in sessions:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.first.data, ignore_errors=True)  # it never comes back

    def promote(self) -> None:
        with asked(self.second) as server:
            assert server.execute("SELECT pg_promote(true, 60)").fetchone() == (True,)

    def stop(self) -> None:
        self._running.close()


def end(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    if process.poll() is None:
        process.send_signal(how)
        process.wait(30)


def children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


@contextmanager
def asked(server: Server) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    host = str(server.sockets)
    with psycopg.connect(host=host, user="postgres", dbname="postgres", autocommit=True) as connection:
        yield connection


@contextmanager
def replicated(folder: Path) -> Iterator[Pair]:
    pair = Pair(folder)
    try:
        pair.start()
        yield pair
    finally:
        pair.stop()
