"""Filter of system calls, run by a small interpreter: a processor of the other kind is rarely at hand."""

import errno
import struct

import pytest

from devcluster.kubelet.processes import seccomp

ALLOWED = "allowed"


def answer(machine: str, number: int, first: int = 0, architecture: int | None = None) -> str:
    """Return the kernel's answer to a call with this first argument."""
    code = seccomp.program(machine)
    lines = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    words = {0: number, 4: architecture or seccomp.ARCHITECTURES[machine], 16: first}
    at = held = 0
    while True:
        what, then, otherwise, k = lines[at]
        at += 1
        if what == 0x20:
            held = words[k]
        elif what == 0x06:
            return ALLOWED if k == 0x7FFF0000 else errno.errorcode[k & 0xFFFF]
        else:
            at += then if {0x15: held == k, 0x35: held >= k, 0x45: bool(held & k)}[what] else otherwise


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def of(call: tuple[int | None, int | None], machine: str) -> int:
    number = call[0 if machine == "x86_64" else 1]
    assert number is not None
    return number


READ, EXECVE, PTRACE = (0, 63), (59, 221), (101, 117)
CLONE, CLONE3, SOCKET, PAIR = (56, 220), (435, 435), (41, 198), (53, 199)


def test_what_programs_need_is_allowed(machine: str) -> None:
    for call in (READ, EXECVE, PTRACE, CLONE):
        assert answer(machine, of(call, machine)) == ALLOWED


def test_every_refused_call_is_refused(machine: str) -> None:
    for call in seccomp.REFUSED.values():
        number = getattr(call, machine)
        if number is not None:
            assert answer(machine, number) == "EPERM"


def test_children_are_made_but_no_namespaces(machine: str) -> None:
    assert answer(machine, of(CLONE, machine), 0x01200011) == ALLOWED  # as fork
    assert answer(machine, of(CLONE, machine), 0x003D0F00) == ALLOWED  # as a thread
    for flag in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(machine, of(CLONE, machine), flag | 17) == "EPERM"
    assert answer(machine, of(CLONE3, machine)) == "ENOSYS"  # otherwise the C library would not try clone


def test_sockets_are_of_the_four_usual_families(machine: str) -> None:
    for call in (SOCKET, PAIR):
        for family in range(46):
            told = ALLOWED if family in (1, 2, 10, 16) else "EAFNOSUPPORT"
            assert answer(machine, of(call, machine), family) == told


def test_calls_of_another_architecture_are_not_there(machine: str) -> None:
    assert answer(machine, 3, architecture=0x40000003) == "ENOSYS"
    assert answer(machine, 0x40000000 + 165) == "ENOSYS"
