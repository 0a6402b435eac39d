"""System calls that a pod's processes may not make, as a program for the kernel's filter. Pure.

The list is close to the profile RuntimeDefault of container runtimes: calls that need a right which no pod has, and
calls that expose large parts of the kernel. They are refused, not killed, so that programs can do without them.
"""

import errno
import struct
from typing import NamedTuple

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_OTHER_ABI = 0x40000000
"""From here on, numbers on x86_64 belong to x32, which would be a way around every other line."""
_NEW_NAMESPACES = 0x7E020000
_FAMILIES = {"unix": 1, "inet": 2, "inet6": 10, "netlink": 16}


class Call(NamedTuple):
    x86_64: int | None
    aarch64: int | None


REFUSED = {
    # Namespaces and mounts, by old and new calls.
    "mount": Call(165, 40),
    "umount2": Call(166, 39),
    "pivot_root": Call(155, 41),
    "unshare": Call(272, 97),
    "setns": Call(308, 268),
    "open_tree": Call(428, 428),
    "move_mount": Call(429, 429),
    "fsopen": Call(430, 430),
    "fsconfig": Call(431, 431),
    "fsmount": Call(432, 432),
    "fspick": Call(433, 433),
    "mount_setattr": Call(442, 442),
    "open_by_handle_at": Call(304, 265),
    # Large parts of the kernel that a notebook does not need.
    "io_uring_setup": Call(425, 425),
    "io_uring_enter": Call(426, 426),
    "io_uring_register": Call(427, 427),
    "bpf": Call(321, 280),
    "perf_event_open": Call(298, 241),
    "userfaultfd": Call(323, 282),
    "fanotify_init": Call(300, 262),
    "kcmp": Call(312, 272),
    # The keys of the user who started devcluster.
    "add_key": Call(248, 217),
    "request_key": Call(249, 218),
    "keyctl": Call(250, 219),
    # The machine as a whole.
    "init_module": Call(175, 105),
    "finit_module": Call(313, 273),
    "delete_module": Call(176, 106),
    "kexec_load": Call(246, 104),
    "kexec_file_load": Call(320, 294),
    "reboot": Call(169, 142),
    "swapon": Call(167, 224),
    "swapoff": Call(168, 225),
    "syslog": Call(103, 116),
    "acct": Call(163, 89),
    "quotactl": Call(179, 60),
    "iopl": Call(172, None),
    "ioperm": Call(173, None),
    "modify_ldt": Call(154, None),
    "vhangup": Call(153, 58),
}
_CLONE, _CLONE3 = Call(56, 220), Call(435, 435)
_SOCKETS = {"socket": Call(41, 198), "socketpair": Call(53, 199)}


def _line(code: int, k: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, k)


def _refuse(number: int) -> bytes:
    return _line(_RETURN, _REFUSE | number)


def program(machine: str) -> bytes:
    """Return the filter for this machine's processors; a 32-bit program gets no system call at all."""
    lines = [
        _line(_LOAD, _ARCHITECTURE_AT),
        _line(_EQUAL, ARCHITECTURES[machine], then=1),
        _refuse(errno.ENOSYS),
        _line(_LOAD, _NUMBER_AT),
        _line(_AT_LEAST, _OTHER_ABI, otherwise=1),
        _refuse(errno.ENOSYS),
    ]
    for call in REFUSED.values():
        if (number := getattr(call, machine)) is not None:
            lines += [_line(_EQUAL, number, otherwise=1), _refuse(errno.EPERM)]
    # No filter can read the flags of clone3, which lie in memory; the C library falls back to clone.
    lines += [_line(_EQUAL, getattr(_CLONE3, machine), otherwise=1), _refuse(errno.ENOSYS)]
    lines += [_line(_EQUAL, getattr(_CLONE, machine), otherwise=4), _line(_LOAD, _FIRST_ARGUMENT_AT)]
    lines += [_line(_ANY_BIT, _NEW_NAMESPACES, otherwise=1), _refuse(errno.EPERM), _line(_RETURN, _ALLOW)]
    for call in _SOCKETS.values():
        families = [
            _line(_EQUAL, family, then=len(_FAMILIES) - n) for n, family in enumerate(_FAMILIES.values())
        ]
        body = [
            _line(_LOAD, _FIRST_ARGUMENT_AT),
            *families,
            _refuse(errno.EAFNOSUPPORT),
            _line(_RETURN, _ALLOW),
        ]
        lines += [_line(_EQUAL, getattr(call, machine), otherwise=len(body)), *body]
    return b"".join([*lines, _line(_RETURN, _ALLOW)])
