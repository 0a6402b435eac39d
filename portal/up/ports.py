"""Free ports, and the processes that hold the others.

Another program's wildcard listener blocks a port on every address; we bind loopback addresses only.
"""

import contextlib
import errno
import socket
from collections.abc import Iterator
from pathlib import Path

from portal.up.refusal import Refusal

LOOPBACK = "127.0.0.1"
# From the range that a trial gives to Services of workspaces; nothing else uses this address.
PROBE = "127.64.255.254"
# Jupyter and sshd inside a workspace.
WORKSPACE_PORTS = (8888, 2222)
SSH_JUMP = 2222  # unless it is taken
LISTEN = "0A"


def is_free(address: str, port: int) -> bool:
    """Return True if we can listen there now. Our own lingering connections do not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError as reason:
            if reason.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def require_web_port(port: int) -> None:
    if not is_free(LOOPBACK, port):
        raise Refusal(
            f"Port {port} is taken{holder_words(port)}. Stop that, or choose another: PORT={port + 1} make up"
        )


def require_workspace_ports() -> None:
    for port in WORKSPACE_PORTS:
        if not is_free(PROBE, port):
            raise Refusal(
                f"Port {port} is taken on all addresses{holder_words(port)}, and workspaces need it on "
                f"theirs (127.64.…). Stop that, or let it listen on {LOOPBACK} alone."
            )


def ssh_service_port() -> int:
    """Return 22 as on a real cluster, if this machine's own sshd and our rights allow it; else 2222."""
    return 22 if is_free(PROBE, 22) else 2222


def keep_or_choose(previous: str | None) -> int:
    """Return the previous port if it is still free, so that addresses do not change; else any free one."""
    if previous and is_free(LOOPBACK, int(previous)):
        return int(previous)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def holder_words(port: int) -> str:
    """Return the port's holder, such as ` by nginx (pid 12)`; empty if we cannot see it."""
    inodes = set(listening_inodes(port))
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and inodes & set(socket_inodes(entry)):
            name = (entry / "comm").read_text().strip()
            return f" by {name} (pid {entry.name})"
    return ""


def listening_inodes(port: int) -> Iterator[str]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(FileNotFoundError):
            for line in Path(table).read_text().splitlines()[1:]:
                _, local, _, state, *_, inode = line.split()[:10]
                if state == LISTEN and int(local.rpartition(":")[2], 16) == port:
                    yield inode


def socket_inodes(entry: Path) -> Iterator[str]:
    """Yield the inodes of a process's open sockets; none if it belongs to another account."""
    with contextlib.suppress(OSError):
        for descriptor in (entry / "fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(descriptor.readlink())
                if target.startswith("socket:["):
                    yield target[len("socket:[") : -1]
