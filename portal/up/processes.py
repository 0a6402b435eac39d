"""The parts of a trial under supervisor: started by us one by one, restarted by it, stopped in reverse order.

Supervisor has a session of its own, so that Ctrl-C in the terminal reaches `make up` alone, which then stops
everything in order; and every part has a process group of its own.
"""

import http.client
import shlex
import signal
import subprocess
import sys
import time
import xmlrpc.client
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, Self

from supervisor.xmlrpc import SupervisorTransport

from portal.up import leftovers
from portal.up.plan import REPOSITORY, Program
from portal.up.refusal import Refusal
from portal.up.state import State

SUPERVISOR = "supervisor"
# All parts stop in turn, and each is killed when its own time is over.
STOP_SECONDS = 20
LEFTOVER_SECONDS = 2
LOG_LINES_SHOWN = 15
KILLED = "The supervisor was killed, so everything was stopped. `make up` starts it again."


def configuration(state: State, sockets: Path, programs: Iterable[Program]) -> str:
    """Return supervisord.conf. `%` has a meaning there, so values are escaped."""
    sections = [
        f"""[supervisord]
nodaemon=true
silent=true
directory={escape(REPOSITORY)}
logfile={escape(state.logs / "supervisor.log")}
pidfile={escape(state.folder / "supervisor.pid")}
childlogdir={escape(state.logs)}
[unix_http_server]
file={escape(control(sockets))}
chmod=0700
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
"""
    ]
    programs = list(programs)
    for priority, (group, members) in enumerate(
        groupby(programs, key=lambda program: program.group), start=1
    ):
        names = ",".join(program.name for program in members)
        sections.append(f"[group:{group}]\nprograms={names}\npriority={priority}\n")
    for priority, program in enumerate(programs, start=1):
        command = as_part(program.name, program.command)
        variables = {**program.environment, leftovers.PART_VARIABLE: program.name}
        sections.append(
            f"""[program:{program.name}]
command={escape(shlex.join(command))}
environment={",".join(f'{name}="{escape(value)}"' for name, value in variables.items())}
priority={priority}
autostart=false
autorestart=true
startretries=3
stopsignal={program.stop_signal}
stopwaitsecs={program.stop_seconds}
killasgroup=true
redirect_stderr=true
stdout_logfile={escape(log_file(state, program.name))}
stdout_logfile_maxbytes=5MB
stdout_logfile_backups=2
"""
        )
    return "".join(sections)


def escape(value: object) -> str:
    return str(value).replace("%", "%%")


def as_part(name: str, command: Iterable[str]) -> list[str]:
    return [sys.executable, "-m", "portal.up.child", name, "--", *command]


def log_file(state: State, name: str) -> Path:
    return state.logs / f"{name}.log"


def control(sockets: Path) -> Path:
    return sockets / "supervisor.sock"


class Supervisor:
    """A running supervisor, as a context manager: everything is stopped at its end, whatever happens inside."""

    def __init__(self, state: State, sockets: Path, programs: Iterable[Program], environ: Mapping[str, str]):
        self._state = state
        self._programs = {program.name: program for program in programs}
        self._control = control(sockets)
        self._environ = {**environ, leftovers.PART_VARIABLE: SUPERVISOR}
        self._conf = state.folder / "supervisord.conf"
        self._conf.write_text(configuration(state, sockets, self._programs.values()))

    def __enter__(self) -> Self:
        self._control.unlink(missing_ok=True)
        with log_file(self._state, SUPERVISOR).open("a") as log:
            self._process = subprocess.Popen(
                as_part(SUPERVISOR, [sys.executable, "-m", "portal.up.supervising", "-c", str(self._conf)]),
                cwd=REPOSITORY,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        """Stop in order, then end what still runs, in case supervisor itself was killed."""
        self._process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        while self.is_running and time.monotonic() < deadline:
            self._answers()  # supervisor checks its children once a second, or when it is called
            time.sleep(0.05)
        end_leftovers(self._state, self._programs)
        self._conf.unlink(missing_ok=True)
        self._control.unlink(missing_ok=True)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def _call(self, method: str, *arguments: Any) -> Any:
        transport = SupervisorTransport(None, None, f"unix://{self._control}")
        with xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport) as proxy:
            return getattr(proxy.supervisor, method)(*arguments)

    def wait_until_up(self) -> None:
        self._wait(self._answers, SUPERVISOR, 15, lambda: self.is_running)

    def _answers(self) -> bool:
        try:
            self._call("getState")
        except (OSError, http.client.HTTPException, xmlrpc.client.Error):
            return False
        return True

    def start(self, name: str) -> None:
        self._call("startProcess", f"{self._programs[name].group}:{name}", False)

    def start_given_up(self) -> None:
        """Start parts that supervisor gave up after a few tries: a database may be away for longer."""
        for name, info in self.states().items():
            if info["statename"] == "FATAL":
                with suppress(xmlrpc.client.Fault):  # it ended again at once
                    self.start(name)

    def wait_for(self, name: str, is_ready: Callable[[], bool], timeout_seconds: float) -> None:
        """Wait for the evidence that a part serves; raise Refusal with its last lines if it ended at once, twice.

        Once proves nothing: a part killed in its first second looks the same to supervisor, which starts it again.
        """
        first = self.states()[name]["start"]

        def is_alive() -> bool:
            info = self.states()[name]
            return info["statename"] not in ("BACKOFF", "FATAL") or info["start"] == first

        self._wait(is_ready, name, timeout_seconds, is_alive)

    def _wait(
        self, is_ready: Callable[[], bool], name: str, timeout_seconds: float, is_alive: Callable[[], bool]
    ) -> None:
        deadline = time.monotonic() + timeout_seconds
        while not is_ready():
            if time.monotonic() > deadline or not is_alive():
                log = log_file(self._state, name)
                words = "\n".join(f"  {line}" for line in last_lines(log))
                raise Refusal(f"The {name} did not start. Its last words, from {log}:\n{words}")
            time.sleep(0.1)

    def statename(self, name: str) -> str:
        return str(self.states()[name]["statename"])

    def states(self) -> dict[str, dict[str, Any]]:
        """Supervisor's data per part: statename, pid, start, … Raise Refusal if supervisor was killed."""
        try:
            return {info["name"]: info for info in self._call("getAllProcessInfo")}
        except (OSError, http.client.HTTPException) as error:
            raise Refusal(KILLED) from error


def end_leftovers(state: State, parts: Iterable[str]) -> int:
    """End the processes of these parts, supervisor first, or it would restart them. Return their number."""
    supervisors = leftovers.left(state.folder, state.records, [SUPERVISOR])
    leftovers.end(supervisors, signal.SIGKILL, 5)
    found = leftovers.left(state.folder, state.records, parts)
    leftovers.end(leftovers.end(found, signal.SIGTERM, LEFTOVER_SECONDS), signal.SIGKILL, 5)
    return len(supervisors) + len(found)


def last_lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:] if log.exists() else []
