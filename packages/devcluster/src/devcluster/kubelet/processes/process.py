"""Process pods: each container is a local process in its own namespaces, with its own uid and no rights."""

import asyncio
import contextlib
import json
import os
import platform
import shutil
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from devcluster import instance
from devcluster.kubelet.containers.logs import LogWriter
from devcluster.kubelet.network import names
from devcluster.kubelet.processes import rootfs, seccomp
from devcluster.kubelet.processes.cgroups import MemoryGroup, MemoryGroups
from devcluster.kubelet.processes.sessions import Control, Session, Wish, not_found, readable
from devcluster.kubelet.processes.usage import Usage, of_families
from devcluster.kubelet.runtime import CannotRun, Container, ContainerPlan, Exit, container_id
from devcluster.network import PodNetwork
from devcluster.resources import Obj

START_SECONDS = 20.0
LOG_PAUSES = 9
"""Times as long as it took to write what a container said, nothing more is read of it."""
DRAIN_SECONDS = 10.0
"""For its last words to be read: nobody holds the pipes any more, so only a busy machine takes so long."""
WATCH_SECONDS = 0.5
LONGEST_LINE_BYTES = 16384
_SANDBOX = Path(__file__).with_name("sandbox.py")
_GROUP_STEP = 100_000_000
"""Further groups lie this far from a pod's first gid, each in a range of its own."""


class ProcessContainer:
    def __init__(
        self,
        process: asyncio.subprocess.Process,
        control: Control,
        log: LogWriter,
        memory: MemoryGroup | None,
        limit_bytes: int,
    ):
        self.id, self.began = container_id(), time.monotonic()
        self.process, self.control = process, control
        self._log, self._memory, self._limit_bytes = log, memory, limit_bytes
        self._killed_for_memory = False
        self._readers = [
            asyncio.ensure_future(self._read(stream, name))
            for stream, name in ((process.stdout, "stdout"), (process.stderr, "stderr"))
            if stream
        ]
        self._watcher = asyncio.ensure_future(self._watch()) if limit_bytes else None
        self._exit = asyncio.ensure_future(self._ending())

    async def wait(self) -> Exit:
        return await asyncio.shield(self._exit)

    async def stop(self, grace_seconds: float) -> None:
        if grace_seconds > 0:
            self.control.end()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._exit), grace_seconds)
        self.kill()
        await asyncio.shield(self._exit)

    async def execute(self, wish: Wish) -> Session:
        return await self.control.execute(wish)

    def kill(self) -> None:
        """Kill all processes of the container: they end with the first of their pid namespace."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()

    async def _ending(self) -> Exit:
        code = await self.process.wait()
        if code < 0:
            code = 128 - code
        await asyncio.wait(self._readers, timeout=DRAIN_SECONDS)
        for task in [*self._readers, *filter(None, [self._watcher])]:
            task.cancel()
        self._log.close()
        self.control.close()
        out_of_memory = self._killed_for_memory or (
            code == 137 and self._memory is not None and self._memory.kills() > 0
        )
        if self._memory:
            self._memory.remove()
        reason = "OOMKilled" if out_of_memory else "Completed" if code == 0 else "Error"
        return Exit(code, reason)

    async def _read(self, stream: asyncio.StreamReader, name: str) -> None:
        rest = b""
        while chunk := await stream.read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            began = time.monotonic()
            self._log.lines(name, lines)
            # The API shares this process: leave it most of the time, however much is written.
            await asyncio.sleep((time.monotonic() - began) * LOG_PAUSES)
            if len(rest) > LONGEST_LINE_BYTES:
                self._log.line(name, rest, part=True)
                rest = b""
        if rest:
            self._log.line(name, rest, part=True)

    async def _watch(self) -> None:
        """Kill the whole container at its memory limit, not one process, as on a node with memory.oom.group."""
        while not self._over_limit():  # noqa: ASYNC110  (there is nothing to be told by)
            await asyncio.sleep(WATCH_SECONDS)
        self._killed_for_memory = True
        self.kill()

    def _over_limit(self) -> bool:
        if self._memory:
            return self._memory.kills() > 0
        return of_families([self.process.pid])[self.process.pid].memory_bytes > self._limit_bytes


class ProcessRuntime:
    real = True

    def __init__(self, state: Path, network: PodNetwork, *, control_groups: bool = True):
        """Set up the runtime. Memory is watched without control groups, or if the machine allows none."""
        self._state, self._network = state, network
        self._rootless = os.geteuid() != 0
        MemoryGroups(state).clear()  # left by a killed instance
        self._memory = MemoryGroups(state) if control_groups else None
        self._running: dict[str, list[ProcessContainer]] = {}

    async def start(self, plan: ContainerPlan) -> ProcessContainer:
        if not plan.command:
            raise CannotRun("CreateContainerError", "no command specified")
        if plan.uid == 0:
            raise CannotRun("CreateContainerConfigError", "a process pod never runs as root: set runAsUser")
        uid = await asyncio.to_thread(self._prepare, plan)
        memory = self._memory.make(plan.pod_uid, plan.memory_bytes) if self._memory else None
        log = LogWriter(plan.log)
        reading, writing = os.pipe()
        tie, stdin = socket.socketpair()
        try:
            process = await self._spawn(plan, stdin, writing)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
            stdin.close()
        control = Control(tie, uid)
        container = ProcessContainer(process, control, log, memory, plan.memory_bytes)
        self._running.setdefault(plan.pod_uid, []).append(container)
        self._remember()
        try:
            sent = json.dumps(self._instructions(plan, uid, memory)).encode()
            with contextlib.suppress(ConnectionError):  # it has already ended, and has sent why
                await control.send_plan(sent)
            told = await _told(reading)
        except BaseException:
            container.kill()
            raise
        finally:
            os.close(reading)
        if told != b"ok":
            container.kill()
            await container.wait()
            raise _refusal(told.decode(errors="replace") or _last_words(plan.log))
        return container

    async def _spawn(
        self, plan: ContainerPlan, stdin: socket.socket, status: int
    ) -> asyncio.subprocess.Process:
        command = ["setpriv", "--pdeathsig", "KILL", *await self._network.join(plan.pod_uid, plan.address)]
        command += ["unshare", "--fork", "--kill-child=KILL", "--propagation", "private"]
        command += ["--mount", "--pid", "--uts", "--ipc"]
        if self._rootless:
            command += ["--user", "--keep-caps", f"--map-user={plan.uid}", f"--map-group={plan.gid}"]
        command += [sys.executable, "-I", "-S", str(_SANDBOX), str(status)]
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=stdin.fileno(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=[status],
            env={"PATH": rootfs.SYSTEM_PATH},
            start_new_session=True,
        )

    def _host_uid(self, plan: ContainerPlan) -> int:
        return os.geteuid() if self._rootless else plan.host_uid

    def _scratch(self, plan: ContainerPlan) -> Path:
        return self._state / "scratch" / plan.pod_uid / ".container" / plan.name

    def _prepare(self, plan: ContainerPlan) -> int:
        """Make the pod's folders, owned by its uid; its disks are owned by the image's user."""
        uid = self._host_uid(plan)
        scratch = self._scratch(plan)
        shutil.rmtree(scratch, ignore_errors=True)  # a new start begins without the old one's files
        for name, mode in (("tmp", 0o1777), ("home", 0o755)):
            path = scratch / name
            path.mkdir(parents=True, exist_ok=True)
            if not self._rootless:
                os.chown(path, uid, uid)
            path.chmod(mode)
        if not self._rootless:
            for mount in plan.mounts:
                if mount.disk and mount.source:
                    _own(mount.source, plan.uid, plan.gid)
        return uid

    def _instructions(self, plan: ContainerPlan, uid: int, memory: MemoryGroup | None) -> Obj:
        outside = self._network.outside
        extra = [g for g in dict.fromkeys(plan.groups) if g != plan.gid]
        gid_map = [(plan.gid, uid), *((g, uid + n * _GROUP_STEP) for n, g in enumerate(extra, 1))]
        hosts = names.folder(self._state, plan.pod_uid)
        inside = (plan.uid, plan.gid) if self._rootless else (uid, uid)
        return {
            "root": str(self._state / "roots"),
            "rootless": self._rootless,
            "hostname": plan.hostname,
            "uid": plan.uid,
            "gid": plan.gid,
            "host_uid": uid,
            "gid_map": gid_map,
            "groups": [g for g, _ in gid_map],
            "cgroups": [str(memory.procs)] if memory else [],
            "folders": rootfs.FOLDERS,
            "links": rootfs.links(),
            "files": rootfs.files(plan, self._network.nameserver) | dict(outside.files),
            "mounts": rootfs.mounts(plan, self._scratch(plan), hosts, *inside),
            "refused_calls": seccomp.program(platform.machine()).hex(),
            "command": plan.command,
            "env": dict(outside.environment) | rootfs.environment(plan),
            "cwd": plan.working_dir or "/",
        }

    def _remember(self) -> None:
        pids = [
            c.process.pid for found in self._running.values() for c in found if c.process.returncode is None
        ]
        started = {pid: instance.start_time(pid) for pid in pids}
        instance.remember(self._state, {pid: at for pid, at in started.items() if at is not None})

    async def measure(self, containers: Sequence[Container]) -> dict[str, Usage]:
        ours = {c.id: c.process.pid for c in containers if isinstance(c, ProcessContainer)}
        found = await asyncio.to_thread(of_families, list(ours.values())) if ours else {}
        return {id_: found[pid] for id_, pid in ours.items()}

    async def forget(self, pod: Obj) -> None:
        for container in self._running.pop(pod["metadata"]["uid"], []):
            container.kill()
            await container.wait()
        if self._memory:
            self._memory.sweep(pod["metadata"]["uid"])
        self._remember()

    async def close(self) -> None:
        containers = [c for found in self._running.values() for c in found]
        for container in containers:
            container.kill()
        await asyncio.gather(*(c.wait() for c in containers), return_exceptions=True)
        self._running.clear()
        self._remember()
        if self._memory:
            self._memory.clear()


def _last_words(log: Path) -> str:
    """Return the error of `unshare`, if the kernel refused the namespaces."""
    lines = log.read_text(errors="replace").splitlines()
    said = lines[-1].split(" ", 3)[-1] if lines else "no reason given"
    return f"the kernel refuses the pod's namespaces: {said}"


async def _told(status: int) -> bytes:
    """Return the sandbox's report of its start; empty if it ended without a report."""
    try:
        await asyncio.wait_for(readable(status), START_SECONDS)
    except TimeoutError:
        return b"the sandbox did not start in time"
    return os.read(status, 4096)


def _refusal(told: str) -> CannotRun:
    why = f"runc create failed: unable to start container process: {not_found(told)}"
    told = f"failed to create containerd task: failed to create shim task: OCI runtime create failed: {why}"
    return CannotRun("StartError", told)


def _own(folder: Path, uid: int, gid: int) -> None:
    """Change the owner, but only if the top folder has another one, as fsGroupChangePolicy OnRootMismatch does."""
    if folder.stat().st_uid == uid:
        return
    # By descriptors: a pod that has the disk may create links meanwhile.
    for _, folders, files, at in os.fwalk(folder):
        for name in (*folders, *files):
            os.chown(name, uid, gid, dir_fd=at, follow_symlinks=False)
    os.chown(folder, uid, gid)
