"""First process inside a pod's new namespaces: builds the root, drops all rights, runs the command.

`unshare` starts it with nothing but the standard library (python -I -S). Stdin is a socket to the kubelet: its first
line is the plan, each further line an order, and when the socket closes all processes here die. The first argument
names a descriptor that reports the start to the kubelet: `ok`, or the error.

Orders: `{"end": true}` asks the command to end. `{"exec": N, "command": […], "tty": false, "streams": 2}` comes with
descriptors: a socket that reports the command's start and exit, then its stdout, stderr and, if there is a third,
stdin; with a tty only the socket, over which the terminal's other side is sent back. `{"kill": N}` ends that command.
The command is a child of this process, so it has the pod's namespaces, user, limits and rights by inheritance.
"""

import array
import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys
import termios
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC, MOVE_MOUNT_F_EMPTY_PATH = 1, 0o2000000, 4
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_NOEXEC, ATTR_IDMAP = 1, 2, 4, 8, 0x00100000
SYS_OPEN_TREE, SYS_MOVE_MOUNT, SYS_MOUNT_SETATTR = 428, 429, 442
CLONE_NEWUSER = 0x10000000
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
SECCOMP_MODE_FILTER = 2
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
MOST_PROCESSES = 4096  # threads count too; this stops a fork bomb
OUT_OF_MEMORY_SCORE = "500"  # when memory runs out, pods end before the machine's own processes
NO_CORE = 1  # 0 would not stop a core dump into this machine's crash handler
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

Plan = dict[str, Any]
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def check(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    done = libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode())
    check(done, f"mount {kind} on {target}")


def beneath(source: str, sub: str) -> int:
    """Open a path in a volume, made if missing, without following links: the volume's pod may change it meanwhile."""
    at = os.open(source, os.O_PATH | os.O_CLOEXEC)
    for part in filter(None, sub.split("/")):
        if part == "..":
            raise OSError(f"subPath {sub} leads out of its volume")
        with contextlib.suppress(FileExistsError):
            above = os.fstat(at)
            os.mkdir(part, dir_fd=at)
            os.chown(part, above.st_uid, above.st_gid, dir_fd=at, follow_symlinks=False)
        below = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        os.close(at)
        at = below
        if stat.S_ISLNK(os.fstat(at).st_mode):
            raise OSError(f"subPath {sub} leads over a link")
    return at


def opened(source: str, attributes: int, userns: int | None = None, sub: str = "") -> int:
    """Open a tree to bind, with attributes; a user namespace translates its files' owners."""
    recursive = 0 if userns else AT_RECURSIVE
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | recursive
    found = beneath(source, sub)
    tree = check(libc.syscall(SYS_OPEN_TREE, found, b"", flags), f"open {source}")
    os.close(found)
    if userns:
        attributes |= ATTR_IDMAP
    wanted = struct.pack("QQQQ", attributes, 0, 0, userns or 0)
    done = libc.syscall(SYS_MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH | recursive, wanted, len(wanted))
    check(done, f"set the attributes of {source}")
    return tree


def place(tree: int, target: str) -> None:
    """Mount an opened tree at a path, made if it is missing."""
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(target):
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    done = libc.syscall(SYS_MOVE_MOUNT, tree, b"", AT_FDCWD, target.encode(), MOVE_MOUNT_F_EMPTY_PATH)
    check(done, f"mount on {target}")
    os.close(tree)


def make_userns(plan: Plan, proc: str) -> int:
    """Make a user namespace with the image's user only, mapped to the pod's own uid on this machine."""
    waiting, go = os.pipe()
    made, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(told, b"y" if libc.unshare(CLONE_NEWUSER) == 0 else b"n")
        os.close(go)
        os.read(waiting, 1)
        os._exit(0)
    if os.read(made, 1) != b"y":
        raise OSError("the kernel refuses user namespaces")
    groups = "".join(f"{inside} {outside} 1\n" for inside, outside in plan["gid_map"])
    Path(f"{proc}/{child}/uid_map").write_text(f"{plan['uid']} {plan['host_uid']} 1\n")
    Path(f"{proc}/{child}/gid_map").write_text(groups)
    userns = os.open(f"{proc}/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    os.close(go)
    os.waitpid(child, 0)
    for fd in (waiting, made, told):
        os.close(fd)
    return userns


def build_root(plan: Plan) -> int | None:
    """Make the pod's files below plan["root"]. Return the user namespace to enter (None without root)."""
    root = plan["root"]
    mount("none", root, "tmpfs", 2 | 4, "mode=755,size=16m")
    for path in plan["folders"]:
        Path(root + path).mkdir(parents=True, exist_ok=True)
    mount("proc", root + "/proc", "proc", 2 | 4 | 8, "")
    userns = None if plan["rootless"] else make_userns(plan, root + "/proc")
    for name in DEVICES:
        place(opened(f"/dev/{name}", ATTR_NOSUID | ATTR_NOEXEC), f"{root}/dev/{name}")
    mount("devpts", root + "/dev/pts", "devpts", 2 | 8, "newinstance,ptmxmode=0666,mode=0620")
    for path, to in plan["links"].items():
        Path(root + path).symlink_to(to)
    for path, content in plan["files"].items():
        Path(root + path).write_text(content)
    return userns


def open_mounts(plan: Plan, userns: int | None) -> list[tuple[Plan, int | None]]:
    """Open the tree of each mount in the plan; None for memory and links."""
    found: list[tuple[Plan, int | None]] = []
    for entry in plan["mounts"]:
        tree = None
        if entry.get("source"):
            flags = ATTR_NOSUID | ATTR_NODEV | (ATTR_RDONLY if entry["read_only"] else 0)
            tree = opened(entry["source"], flags, userns if entry["translate"] else None, entry["sub"])
        found.append((entry, tree))
    return found


def lay_mounts(mounts: list[tuple[Plan, int | None]]) -> None:
    """Place the mounts, after this machine's root was left: links in a volume must not lead there."""
    for entry, tree in mounts:
        target = entry["target"]
        if tree is not None:
            place(tree, target)
        elif "link" in entry:
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                Path(target).symlink_to(entry["link"])
        else:
            Path(target).mkdir(parents=True, exist_ok=True)
            mount("none", target, "tmpfs", 2 | 4, entry["options"])


def enter_root(root: str) -> None:
    os.chdir(root)
    done = libc.syscall(SYS_PIVOT_ROOT[os.uname().machine], b".", b".")
    check(done, "pivot_root")
    check(libc.umount2(b".", MNT_DETACH), "leave the old root")
    os.chdir("/")


def give_up_rights(plan: Plan, userns: int | None) -> None:
    Path("/proc/self/oom_score_adj").write_text(OUT_OF_MEMORY_SCORE)
    if userns is not None:
        check(libc.setns(userns, CLONE_NEWUSER), "enter the user namespace")
        os.close(userns)
    with contextlib.suppress(OSError):
        # The pod must not make a user namespace in which it is root.
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    if userns is not None:
        os.setgroups(plan["groups"])
        os.setresgid(plan["gid"], plan["gid"], plan["gid"])
        os.setresuid(plan["uid"], plan["uid"], plan["uid"])
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = struct.pack("Ii", 0x20080522, 0)
    check(libc.capset(header, bytes(24)), "drop capabilities")
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    # The pod may have the same uid; it must not trace this process, which holds the kubelet's socket.
    check(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "not dumpable")
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (NO_CORE, NO_CORE))
    resource.setrlimit(resource.RLIMIT_NPROC, (MOST_PROCESSES, MOST_PROCESSES))
    filter_calls(bytes.fromhex(plan["refused_calls"]))


def filter_calls(program: bytes) -> None:
    lines = ctypes.create_string_buffer(program, len(program))
    told = struct.pack("HP", len(program) // 8, ctypes.addressof(lines))
    check(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, told, 0, 0), "seccomp")


def become(plan: Plan, command: list[str], streams: list[int]) -> None:
    """Become the command, in a new child, with these streams as stdin, stdout and stderr and no other descriptor."""
    os.setsid()
    if os.isatty(streams[0]):
        fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for signalled in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(signalled, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.chdir(plan["cwd"])
    os.execvpe(command[0], command, plan["env"])  # noqa: S606


def start(plan: Plan, command: list[str], streams: list[int]) -> int:
    """Fork and exec a command. Return its pid; raise OSError with the error of exec."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become(plan, command, streams)
        except OSError as error:
            os.write(writing, f"{command[0]}: {error.strerror}".encode())
        os._exit(127)
    os.close(writing)
    failed = os.read(reading, 4096)
    os.close(reading)
    if failed:
        os.waitpid(child, 0)
        raise OSError(failed.decode())
    return child


@dataclass
class Session:
    """Further command beside the main one, and the socket that reports its exit."""

    pid: int
    fate: socket.socket


class Keeper:
    """Keeper of the main command and its sessions: reaps them, follows orders, and dies with the kubelet."""

    def __init__(self, plan: Plan):
        self._plan, self._main = plan, 0
        self._control = socket.socket(fileno=0)
        self._text = b""
        self._received: list[int] = []
        self._sessions: dict[int, Session] = {}

    def run(self, main: int) -> int:
        """Keep the commands until the main one ends. Return its exit code."""
        self._main = main
        wake, woken = socket.socketpair()
        wake.setblocking(False)
        woken.setblocking(False)
        signal.set_wakeup_fd(woken.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            # Reap before waiting: the command may have ended before its signal could wake this process.
            code = self._reap()
            if code is not None:
                return code
            readable, _, _ = select.select([self._control, wake], [], [])
            if wake in readable:
                wake.recv(4096)
            if self._control in readable:
                for order in self._orders():
                    self._obey(order)

    def _reap(self) -> int | None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return 0
            if pid == 0:
                return None
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
            if pid == self._main:
                return code
            for number, session in list(self._sessions.items()):
                if session.pid == pid:
                    tell(session.fate, {"exit": code})
                    del self._sessions[number]

    def _orders(self) -> list[Plan]:
        data, rights, _, _ = self._control.recvmsg(65536, 4096, socket.MSG_CMSG_CLOEXEC)
        for level, kind, content in rights:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                numbers = array.array("i")
                numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
                self._received += numbers
        if not data:
            os._exit(137)  # the kubelet is gone: end, and with this process the whole namespace
        *lines, self._text = (self._text + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def _obey(self, order: Plan) -> None:
        if "exec" in order:
            count = 1 if order["tty"] else order["streams"] + 1
            given, self._received = self._received[:count], self._received[count:]
            if len(given) == count:
                self._open(order, given)
            else:  # no descriptors are left in this process; the caller notices that its socket closes
                for number in given:
                    os.close(number)
        elif session := self._sessions.get(order.get("kill", 0)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(session.pid, signal.SIGKILL)
        elif "end" in order:
            os.kill(self._main, signal.SIGTERM)

    def _open(self, order: Plan, given: list[int]) -> None:
        fate, streams = socket.socket(fileno=given[0]), given[1:]
        try:
            if order["tty"]:
                ours, theirs = os.openpty()
                socket.send_fds(fate, [b'{"tty": true}\n'], [ours])
                streams = [theirs, theirs, theirs]
                given += [ours, theirs]
            else:
                if len(streams) < 3:
                    streams.append(os.open("/dev/null", os.O_RDONLY))
                    given.append(streams[-1])
                streams = [streams[2], *streams[:2]]
            self._sessions[order["exec"]] = Session(start(self._plan, order["command"], streams), fate)
        except OSError as error:
            tell(fate, {"failed": str(error)})
        finally:
            for number in given[1:]:
                os.close(number)


def tell(fate: socket.socket, word: Plan) -> None:
    """Send a report and close the socket; ignore that the caller may be gone."""
    with contextlib.suppress(OSError), fate:
        fate.sendall(json.dumps(word).encode() + b"\n")


def read_plan() -> Plan:
    text = b""
    while not text.endswith(b"\n"):
        part = os.read(0, 65536)
        if not part:
            os._exit(137)
        text += part
    plan: Plan = json.loads(text)
    return plan


def main() -> None:
    status = int(sys.argv[1])
    os.set_inheritable(status, False)
    plan = read_plan()
    try:
        for path in plan["cgroups"]:
            Path(path).write_text("0")
        socket.sethostname(plan["hostname"])
        userns = build_root(plan)
        mounts = open_mounts(plan, userns)
        enter_root(plan["root"])
        lay_mounts(mounts)
        for stream in () if plan["rootless"] else (1, 2):
            os.fchown(stream, plan["host_uid"], -1)  # otherwise /dev/stdout could not be opened
        give_up_rights(plan, userns)
        nothing = os.open("/dev/null", os.O_RDONLY)
        running = start(plan, plan["command"], [nothing, 1, 2])
    except (OSError, KeyError, ValueError) as error:
        told = str(error) or traceback.format_exc()
        os.write(status, told.encode()[:4000])
        sys.exit(125)
    os.write(status, b"ok")
    os.close(status)
    os._exit(Keeper(plan).run(running))


if __name__ == "__main__":
    main()
