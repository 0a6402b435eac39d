"""Program of attacks from a shell in a pod: it prints as JSON which of its attempts succeeded.

The tests run it in a pod and, as an ordinary user, beside it: an attempt that succeeds nowhere proves nothing.
"""

import ctypes
import json
import os
import platform
import resource
import socket
import sys
from collections.abc import Callable

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
MACHINES = ["x86_64", "aarch64"]
NUMBERS = {
    "io_uring_setup": (425, 425),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "userfaultfd": (323, 282),
    "open_tree": (428, 428),
    "kcmp": (312, 272),
    "unshare": (272, 97),
}
NEW_USER, NEW_NET = 0x10000000, 0x40000000


def call(name: str, *arguments: object) -> bool:
    number = NUMBERS[name][MACHINES.index(platform.machine())]
    return int(libc.syscall(number, *arguments)) >= 0


def in_child(attempt: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        os._exit(0 if attempt() else 1)
    return os.waitpid(child, 0)[1] == 0


def socket_of(family: int) -> bool:
    try:
        socket.socket(family, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


def connects(family: int, address: str | tuple[str, int]) -> bool:
    with socket.socket(family) as link:
        link.settimeout(3)
        try:
            link.connect(address)
        except OSError:
            return False
    return True


def raises(limit: int) -> bool:
    try:
        resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        return False
    return True


def calls() -> dict[str, bool]:
    ring = ctypes.create_string_buffer(256)
    me = os.getpid()
    return {
        "io_uring": call("io_uring_setup", 4, ring),
        "the keys of who started it": call("keyctl", 0, -3, 0),
        "a key": call("add_key", b"user", b"berth", b"x", 1, -2),
        "userfaultfd": call("userfaultfd", 1),
        "open_tree": call("open_tree", -100, b"/", 0),
        "kcmp": call("kcmp", me, me, 0, 0, 1),
        "a user namespace": in_child(lambda: call("unshare", NEW_USER)),
        "a network of its own": in_child(lambda: call("unshare", NEW_USER | NEW_NET)),
        "vsock": socket_of(40),
    }


def reach(wanted: dict[str, str]) -> dict[str, bool]:
    found = {}
    for name, address in wanted.items():
        if address.startswith("@"):
            found[name] = connects(socket.AF_UNIX, "\0" + address[1:])
        else:
            host, _, port = address.rpartition(":")
            found[name] = connects(socket.AF_INET6 if ":" in host else socket.AF_INET, (host, int(port)))
    return found


if __name__ == "__main__":
    print("found", json.dumps(calls() if sys.argv[1] == "calls" else reach(json.loads(sys.argv[2]))))
