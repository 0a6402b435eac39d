"""Steps of `make up`, in order. Run by `make up` with exec, so that Ctrl-C reaches it."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from portal.environment import state_dir
from portal.up import leftovers
from portal.up.announce import say, starting, welcome
from portal.up.plan import REPOSITORY, Plan, environment, make_plan
from portal.up.processes import Supervisor, end_leftovers, log_file
from portal.up.refusal import Refusal
from portal.up.state import State

PARTS = ("postgres", "cluster", "prepare", "worker", "watcher", "collector", "ssh-jump", "web")
QUIET_SECONDS = 60
SERVES_SECONDS = 180  # of each part, on a busy machine: web alone takes 5 on a quiet one
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(BaseException):
    """Ctrl-C, or a signal to this process: not an error, and nothing may catch it as one."""


def main() -> int:
    try:
        require_linux()
        state = State.make(state_dir())
        with state.held(), state.sockets() as sockets, stoppable():
            up(state, sockets)
    except Refusal as refusal:
        print(f"make up: {refusal}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(
            f"make up: The disk of {state_dir()} is full. Make room there, then start again.", file=sys.stderr
        )
        return 1
    return 0


def require_linux() -> None:
    if sys.platform != "linux":
        raise Refusal("Berth's trial runs on Linux only. On another system, use a Linux virtual machine.")


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn the first stop signal into an exception; ignore later ones, because stopping is under way.

    Handlers are set whatever was inherited: a shell starts background jobs with SIGINT ignored.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        for each in STOP_SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        say("Stopping…")
        raise StopRequested

    for each in STOP_SIGNALS:
        signal.signal(each, stop)
    try:
        yield
    except StopRequested:
        say("Everything is stopped, and nothing is lost: `make up` goes on from here.")


def up(state: State, sockets: Path) -> None:
    if ended := end_leftovers(state, PARTS):
        say(f"Ended {ended} processes that an earlier `make up` had left.")
    plan = make_plan(state, sockets, os.environ)
    state.write_run_file(plan.settings)
    if plan.server:
        plan.server.prepare()
    environ = environment(plan, os.environ)
    say(f"Berth starts from {state.folder}")
    with Supervisor(state, sockets, plan.programs, environ) as supervisor:
        start_all(plan, supervisor, environ)
        say(welcome(plan))
        watch(supervisor, state)


def start_all(plan: Plan, supervisor: Supervisor, environ: dict[str, str]) -> None:
    supervisor.wait_until_up()
    if plan.server:
        with starting("database", f"PostgreSQL in {plan.state.postgres}"):
            supervisor.start("postgres")
            plan.server.wait_until_ready()
            plan.server.ensure_database()
    if plan.has_trial_cluster:
        played = plan.settings["BERTH_DEVCLUSTER_PODS"] == "played"
        pods = "only played" if played else "processes of this machine"
        with starting("cluster", f"a trial cluster; its GPUs are simulated, its pods are {pods}"):
            plan.state.kubeconfig.unlink(missing_ok=True)  # written when the cluster is ready
            supervisor.start("cluster")
            supervisor.wait_for("cluster", plan.state.kubeconfig.exists, SERVES_SECONDS)
    with starting("data", "tables, static files, demo data"):
        prepare(plan, environ)
    for part in ("worker", "watcher", "collector", "ssh-jump", "web"):
        supervisor.start(part)
    with starting("web", plan.address):
        supervisor.wait_for("web", lambda: well(plan.address) >= {"database", "live events"}, SERVES_SECONDS)
    with starting("worker", "starts, watches and stops workspaces"):
        supervisor.wait_for("worker", lambda: well(plan.address) >= {"worker", "queue"}, SERVES_SECONDS)
    with starting("watcher", "tells what changes in the cluster"):
        supervisor.wait_for("watcher", lambda: "watcher" in well(plan.address), SERVES_SECONDS)
    with starting("collector", "keeps the logs of workspaces and jobs"):
        supervisor.wait_for("collector", lambda: "collector" in well(plan.address), SERVES_SECONDS)
    with starting("ssh-jump", f"SSH through Berth at {plan.jump_address}"):
        supervisor.wait_for("ssh-jump", lambda: "ssh-jump" in well(plan.address), SERVES_SECONDS)


def prepare(plan: Plan, environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "portal.up.prepare"]
    if plan.has_new_password:
        command.append("--set-passwords")
    environ = {**environ, leftovers.PART_VARIABLE: "prepare"}
    done = subprocess.run(command, cwd=REPOSITORY, env=environ, start_new_session=True, check=False)
    if done.returncode != 0:
        raise Refusal("The database could not be prepared; the lines above say why.")


def well(address: str) -> set[str]:
    """Names of the parts that /readyz reports as ok."""
    try:
        with urllib.request.urlopen(f"{address}readyz", timeout=5) as response:  # noqa: S310  (our own address)
            told = response.read()
    except urllib.error.HTTPError as not_ready:
        told = not_ready.read()
    except OSError:
        return set()
    try:
        return {name for name, found in json.loads(told)["checks"].items() if found == "ok"}
    except (ValueError, KeyError):
        return set()


def watch(supervisor: Supervisor, state: State) -> None:
    """Stay in the foreground and start parts that were given up. Report restarts, per part at most once a minute."""
    pids = {name: info["pid"] for name, info in supervisor.states().items()}
    quiet_until = dict.fromkeys(pids, 0.0)
    while True:
        time.sleep(1)
        supervisor.start_given_up()
        for name, info in supervisor.states().items():
            if info["pid"] and info["pid"] != pids[name]:
                pids[name] = info["pid"]
                if time.monotonic() > quiet_until[name]:
                    quiet_until[name] = time.monotonic() + QUIET_SECONDS
                    say(f"  {name:<9} ended and was started again; its log: {log_file(state, name)}")


if __name__ == "__main__":
    sys.exit(main())
