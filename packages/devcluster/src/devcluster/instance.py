"""Single instance per state directory: its lock, token and kubeconfig, and the cleanup after a killed one."""

import base64
import contextlib
import fcntl
import json
import os
import secrets
import signal
import time
from pathlib import Path

import yaml


class Busy(Exception):
    """State directory in use by a running devcluster."""


def lock(state: Path) -> int:
    """Lock the state directory for the life of this process. Return the open file; raise Busy if it is locked."""
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    state.chmod(0o700)
    handle = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise Busy(f"another devcluster runs on {state}") from error
    return handle


def write_private(path: Path, text: str) -> None:
    """Replace a file so that only this user may read it."""
    unfinished = path.with_name(path.name + ".new")
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as out:
        out.write(text)
    unfinished.rename(path)


def token(state: Path) -> str:
    """Return the admin's bearer token, made on the first start."""
    path = state / "token"
    if not path.exists():
        write_private(path, secrets.token_urlsafe(32))
    return path.read_text()


def write_kubeconfig(path: Path, url: str, certificate: str, bearer: str) -> None:
    trusted = base64.b64encode(certificate.encode()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "devcluster", "cluster": {"server": url, "certificate-authority-data": trusted}}
        ],
        "users": [{"name": "admin", "user": {"token": bearer}}],
        "contexts": [{"name": "devcluster", "context": {"cluster": "devcluster", "user": "admin"}}],
        "current-context": "devcluster",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, yaml.safe_dump(config, sort_keys=False))


def start_time(pid: int) -> int | None:
    """Return a process's start in clock ticks since boot, None if it ended. With the pid it is unique."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def remember(state: Path, processes: dict[int, int]) -> None:
    """Store our processes (pid to start time) for `end_leftovers`."""
    write_private(state / "processes.json", json.dumps(processes))


def end_leftovers(state: Path) -> None:
    """Kill the processes that a killed instance left running."""
    path = state / "processes.json"
    if not path.exists():
        return
    left = {int(pid): started for pid, started in json.loads(path.read_text()).items()}
    for pid, started in left.items():
        if start_time(pid) == started:
            with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
                os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 2
    while any(start_time(p) == s for p, s in left.items()) and time.monotonic() < deadline:
        time.sleep(0.02)
    path.unlink()
