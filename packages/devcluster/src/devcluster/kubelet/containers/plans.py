"""Plan of one start of a container, from its pod's spec and the objects that it names."""

import contextlib
from dataclasses import replace
from pathlib import Path

from devcluster.kubelet.containers import config
from devcluster.kubelet.containers.logs import forget_before, last_words
from devcluster.kubelet.processes.users import host_uid
from devcluster.kubelet.runtime import CannotRun, ContainerPlan, Ending, Exit, Mount
from devcluster.kubelet.storage.volumes import NotReady, PodVolumes
from devcluster.nodes import Image
from devcluster.resources import Obj
from devcluster.values.quantity import milli, whole

MOST_MESSAGE_BYTES = 4096
SAYING_SECONDS = 0.2
"""How long a simulated program takes."""
ENDS = "devcluster.local/ends"
"""An annotation of played pods: after how many seconds their containers exit, and with which code, as `2:1`."""


class Planner:
    """Planner of the starts of one container; it also reads the container's termination message."""

    def __init__(
        self,
        *,
        pod: Obj,
        spec: Obj,
        address: str,
        lookup: config.Lookup,
        volumes: PodVolumes | None,
        logs: Path,
    ):
        self._pod, self._spec, self._address, self._lookup = pod, spec, address, lookup
        self._volumes, self._logs = volumes, logs

    def plan(self, image: Image, attempt: int) -> ContainerPlan:
        """Return the plan of a start; raise CannotRun if the configuration or this machine does not allow it."""
        forget_before(self._logs, attempt - 1)
        try:
            plan = make_plan(
                pod=self._pod,
                spec=self._spec,
                image=image,
                address=self._address,
                lookup=self._lookup,
                mounts=self._volumes.mounts(self._spec) if self._volumes else [],
                log=self._logs / f"{attempt}.log",
            )
            if self._volumes:
                plan = replace(plan, mounts=[*plan.mounts, self._message_mount(self._volumes, attempt)])
            return plan
        except NotReady as error:
            raise CannotRun(config.CONFIG_ERROR, str(error)) from error

    def explained(self, exit_: Exit, attempt: int) -> Exit:
        """Return the exit with the container's termination message."""
        text = ""
        if self._volumes:
            file = self._volumes.message_file(self._spec["name"], attempt)
            with contextlib.suppress(OSError), file.open("rb") as source:
                text = source.read(MOST_MESSAGE_BYTES).decode(errors="replace")
        falls_back = self._spec.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        if not text and exit_.code and falls_back:
            text = last_words(self._logs / f"{attempt}.log")
        return replace(exit_, message=text or exit_.message)

    def _message_mount(self, volumes: PodVolumes, attempt: int) -> Mount:
        file = volumes.message_file(self._spec["name"], attempt)
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch()
        file.chmod(0o666)
        return Mount(self._spec.get("terminationMessagePath") or "/dev/termination-log", file)


def make_plan(
    *, pod: Obj, spec: Obj, image: Image, address: str, lookup: config.Lookup, mounts: list[Mount], log: Path
) -> ContainerPlan:
    uid, gid, groups = config.user(pod, spec, image)
    env = config.environment(pod, spec, address, lookup)
    meta, resources = pod["metadata"], spec.get("resources", {})
    limits = resources.get("limits", {})
    return ContainerPlan(
        pod_uid=meta["uid"],
        name=spec["name"],
        hostname=pod["spec"].get("hostname") or meta["name"],
        address=address,
        image=image,
        command=config.command(spec, image, env),
        env=env,
        working_dir=spec.get("workingDir", ""),
        uid=uid,
        gid=gid,
        groups=groups,
        host_uid=host_uid(pod),
        memory_bytes=whole(limits.get("memory", "0")),
        log=log,
        mounts=mounts,
        ending=_ending(pod, spec, image),
        cpu_cores=milli((resources.get("requests", {}) | limits).get("cpu", "0")) / 1000,
    )


def _ending(pod: Obj, spec: Obj, image: Image) -> Ending | None:
    """Return how a container ends: init containers at once, others as pod or image say, or only when stopped."""
    inits = [c["name"] for c in pod["spec"].get("initContainers") or []]
    if spec["name"] in inits:
        return None if spec.get("restartPolicy") == "Always" else Ending(0.0, 0)
    asked = (pod["metadata"].get("annotations") or {}).get(ENDS, "")
    if image.says and not asked:
        return Ending(SAYING_SECONDS, image.exits)
    seconds, _, code = asked.partition(":")
    try:
        return Ending(float(seconds), int(code)) if asked else None
    except ValueError as error:
        raise CannotRun(config.CONFIG_ERROR, f"{ENDS} is SECONDS:CODE, not {asked}") from error
