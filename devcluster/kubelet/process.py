"""Process pods: each container is a local process in namespaces of its own, as a uid of its own, with no rights."""

import asyncio
import contextlib
import json
import os
import shutil
import sys
import uuid
from pathlib import Path

from devcluster import instance
from devcluster.kubelet import rootfs
from devcluster.kubelet.cgroups import MemoryGroup, MemoryGroups, resident_bytes
from devcluster.kubelet.logs import LogWriter
from devcluster.kubelet.runtime import CannotRun, ContainerPlan, Exit
from devcluster.resources import Obj

START_SECONDS = 20.0
WATCH_SECONDS = 1.0
_SANDBOX = Path(__file__).with_name("sandbox.py")
_GROUP_STEP = 100_000_000
"""Further groups lie this far from a pod's first gid, each in a range of its own."""


class ProcessContainer:
    def __init__(
        self,
        process: asyncio.subprocess.Process,
        log: LogWriter,
        memory: MemoryGroup | None,
        limit_bytes: int,
    ):
        self.id = f"process://{uuid.uuid4().hex}"
        self.process, self._log, self._memory, self._limit_bytes = process, log, memory, limit_bytes
        self._killed_for_memory = False
        self._readers = [
            asyncio.ensure_future(self._read(stream, name))
            for stream, name in ((process.stdout, "stdout"), (process.stderr, "stderr"))
            if stream
        ]
        self._watcher = asyncio.ensure_future(self._watch()) if limit_bytes and memory is None else None
        self._exit = asyncio.ensure_future(self._ending())

    async def wait(self) -> Exit:
        return await asyncio.shield(self._exit)

    async def stop(self, grace_seconds: float) -> None:
        if self.process.stdin and grace_seconds > 0:
            with contextlib.suppress(OSError):
                self.process.stdin.write(b"TERM\n")
                await self.process.stdin.drain()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._exit), grace_seconds)
        self.kill()
        await asyncio.shield(self._exit)

    def kill(self) -> None:
        """The whole pod's processes at once: the first of a pid namespace takes all others with it."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()

    async def _ending(self) -> Exit:
        code = await self.process.wait()
        if code < 0:
            code = 128 - code
        await asyncio.wait(self._readers, timeout=1.0)
        for task in [*self._readers, *filter(None, [self._watcher])]:
            task.cancel()
        self._log.close()
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
            for line in lines:
                self._log.line(name, line)
            if len(rest) > 16384:
                self._log.line(name, rest)
                rest = b""
        if rest:
            self._log.line(name, rest)

    async def _watch(self) -> None:
        """Without control groups: end it when it holds more than its limit."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if resident_bytes(self.process.pid) > self._limit_bytes:
                self._killed_for_memory = True
                self.kill()
                return


class ProcessRuntime:
    real = True

    def __init__(self, state: Path):
        self._state = state
        self._rootless = os.geteuid() != 0
        MemoryGroups(state).clear()  # what a killed instance left
        self._memory = MemoryGroups(state)
        self._running: dict[str, list[ProcessContainer]] = {}

    async def start(self, plan: ContainerPlan) -> ProcessContainer:
        if not plan.command:
            raise CannotRun("CreateContainerError", "no command specified")
        if plan.uid == 0:
            raise CannotRun("CreateContainerConfigError", "a process pod never runs as root: set runAsUser")
        uid = await asyncio.to_thread(self._prepare, plan)
        memory = self._memory.make(f"{plan.pod_uid}-{plan.name}", plan.memory_bytes)
        reading, writing = os.pipe()
        try:
            process = await self._spawn(plan, writing)
        finally:
            os.close(writing)
        container = ProcessContainer(process, LogWriter(plan.log), memory, plan.memory_bytes)
        self._running.setdefault(plan.pod_uid, []).append(container)
        self._remember()
        try:
            sent = json.dumps(self._instructions(plan, uid, memory)).encode() + b"\n"
            assert process.stdin is not None
            process.stdin.write(sent)
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

    async def _spawn(self, plan: ContainerPlan, status: int) -> asyncio.subprocess.Process:
        command = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "unshare",
            "--fork",
            "--kill-child=KILL",
            "--mount",
            "--pid",
        ]
        command += ["--uts", "--ipc", "--propagation", "private"]
        if self._rootless:
            command += ["--user", "--keep-caps", f"--map-user={plan.uid}", f"--map-group={plan.gid}"]
        command += [sys.executable, "-I", "-S", str(_SANDBOX), str(status)]
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=[status],
            env={"PATH": rootfs.SYSTEM_PATH},
            start_new_session=True,
        )

    def _host_uid(self, plan: ContainerPlan) -> int:
        return os.geteuid() if self._rootless else plan.host_uid

    def _prepare(self, plan: ContainerPlan) -> int:
        """Folders of the pod's own, owned by its uid; disks owned by the image's user."""
        uid = self._host_uid(plan)
        scratch = self._state / "scratch" / plan.pod_uid / ".container"
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
        scratch = self._state / "scratch" / plan.pod_uid / ".container"
        extra = [g for g in dict.fromkeys(plan.groups) if g != plan.gid]
        gid_map = [(plan.gid, uid), *((g, uid + n * _GROUP_STEP) for n, g in enumerate(extra, 1))]
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
            "files": rootfs.files(plan),
            "mounts": rootfs.mounts(plan, scratch, *inside),
            "command": plan.command,
            "env": rootfs.environment(plan),
            "cwd": plan.working_dir or "/",
        }

    def _remember(self) -> None:
        pids = [
            c.process.pid for found in self._running.values() for c in found if c.process.returncode is None
        ]
        started = {pid: instance.start_time(pid) for pid in pids}
        instance.remember(self._state, {pid: at for pid, at in started.items() if at is not None})

    async def forget(self, pod: Obj) -> None:
        for container in self._running.pop(pod["metadata"]["uid"], []):
            container.kill()
            await container.wait()
        shutil.rmtree(self._state / "scratch" / pod["metadata"]["uid"] / ".container", ignore_errors=True)
        self._remember()

    async def close(self) -> None:
        containers = [c for found in self._running.values() for c in found]
        for container in containers:
            container.kill()
        await asyncio.gather(*(c.wait() for c in containers), return_exceptions=True)
        self._running.clear()
        self._remember()
        self._memory.clear()


def _last_words(log: Path) -> str:
    """What `unshare` said where the kernel let nothing of ours begin."""
    lines = log.read_text(errors="replace").splitlines()
    said = lines[-1].split(" ", 3)[-1] if lines else "no reason given"
    return f"the kernel refuses the pod's namespaces: {said}"


async def _told(status: int) -> bytes:
    """What the sandbox says of its start; nothing if it ended without a word."""
    loop = asyncio.get_running_loop()
    heard: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        loop.remove_reader(status)
        heard.set_result(os.read(status, 4096))

    loop.add_reader(status, read)
    try:
        return await asyncio.wait_for(heard, START_SECONDS)
    except TimeoutError:
        return b"the sandbox did not start in time"
    finally:
        loop.remove_reader(status)


def _refusal(told: str) -> CannotRun:
    if "No such file or directory" in told and "/" not in told.split(":", maxsplit=1)[0]:
        told = f'exec: "{told.split(":", maxsplit=1)[0]}": executable file not found in $PATH'
    message = (
        f"failed to create containerd task: failed to create shim task: OCI runtime create failed: {told}"
    )
    return CannotRun("RunContainerError", message)


def _own(folder: Path, uid: int, gid: int) -> None:
    """As fsGroupChangePolicy OnRootMismatch: only when the top is another's."""
    if folder.stat().st_uid == uid:
        return
    for path in [*folder.rglob("*"), folder]:
        os.chown(path, uid, gid, follow_symlinks=False)
