"""Status of a pod from the state of its containers, as the kubelet writes it. Pure but for the clock."""

from dataclasses import dataclass

from devcluster.resources import Obj
from devcluster.values.clock import now

NODE_SHUTDOWN = "Pod was terminated in response to imminent node shutdown."


UNLOCATED = "The container could not be located when the pod was terminated"
NEVER = "1970-01-01T00:00:00Z"


class ContainerState:
    """State of a container. `spec` is the container's; `sidecar` and `init` describe its kind."""

    def __init__(self, spec: Obj, waiting_for: str = "ContainerCreating", *, init: bool = False):
        self.name, self.image = spec["name"], spec["image"]
        self.init = init
        self.sidecar = init and spec.get("restartPolicy") == "Always"
        self.state: Obj = {"waiting": {"reason": waiting_for}}
        self.last_state: Obj = {}
        self.ready = self.started = False
        self.restarts = 0
        self.image_id = self.container_id = ""
        self.ended = False
        """It will not be started again."""
        self._resources: Obj = spec.get("resources") or {}
        self._began = NEVER

    @property
    def initialized(self) -> bool:
        return self.started if self.sidecar else self.exit_code == 0

    @property
    def exit_code(self) -> int | None:
        code: int | None = self.state.get("terminated", {}).get("exitCode")
        return code

    @property
    def status(self) -> Obj:
        status: Obj = {
            "name": self.name,
            "state": self.state,
            "lastState": self.last_state,
            "ready": self.ready,
        }
        status |= {"restartCount": self.restarts, "image": self.image, "imageID": self.image_id}
        if self.container_id:
            status["containerID"] = self.container_id
        status["started"] = self.started
        if self.container_id:
            if requests := self._resources.get("requests"):
                status["allocatedResources"] = requests
            status["resources"] = {k: v for k, v in self._resources.items() if k != "claims"}
        return status

    def wait(self, reason: str, message: str = "") -> None:
        if "terminated" in self.state:
            self.last_state = self.state
        self.state = {"waiting": {"reason": reason} | ({"message": message} if message else {})}
        self.ready = self.started = False

    def restart(self) -> None:
        """Count a restart: from then on the last end is in `lastState`."""
        self.restarts += 1
        if "terminated" in self.state:
            self.wait("ContainerCreating")

    def create(self, container_id: str, image: str, image_id: str) -> None:
        self.container_id, self.image, self.image_id, self._began = container_id, image, image_id, now()

    def run(self) -> None:
        if "terminated" in self.state:
            self.last_state = self.state
        self.state = {"running": {"startedAt": self._began}}

    def end(self, code: int, reason: str, message: str = "") -> None:
        started = NEVER if reason == "StartError" else self._began
        terminated: Obj = {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now()}
        if message:
            terminated["message"] = message
        if self.container_id:
            terminated["containerID"] = self.container_id
        if "terminated" in self.state:
            self.last_state = self.state
        self.state = {"terminated": terminated}
        self.started = False
        self.ready = self.init and not self.sidecar and code == 0

    def give_up(self, *, known: bool) -> None:
        """Settle the state when the pod is over: the last end stays, an expected run that never happened is unknown."""
        self.ended = True
        if "waiting" in self.state and self.last_state:
            self.state, self.last_state = self.last_state, {}
        elif "terminated" not in self.state and known:
            unknown: Obj = {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": UNLOCATED}
            self.state = {"terminated": unknown | {"startedAt": None, "finishedAt": None}}
        self.ready = self.ready and self.init
        self.started = False


@dataclass(frozen=True)
class Outcome:
    """Reason to end a pod that did not end by itself; with `grace_seconds` None its containers' own grace applies."""

    reason: str
    message: str
    level: str = "Normal"
    grace_seconds: float | None = None


def ending(inits: list[ContainerState], mains: list[ContainerState], stopping: bool) -> str:
    """Return the phase that the pod will have, as soon as its containers decide it."""
    failed_init = any(s.ended and not s.initialized for s in inits if not s.sidecar)
    over = failed_init or all(s.ended for s in mains)
    assisted = any("running" in s.state for s in inits if s.sidecar)
    if stopping or (over and not assisted):
        codes = [s.exit_code for s in (*(s for s in inits if not s.sidecar), *mains)]
        return "Succeeded" if all(code == 0 for code in codes) else "Failed"
    never_ran = any("waiting" in s.state and not s.last_state for s in mains)
    return "Pending" if never_ran else "Running"


def pod_status(
    pod: Obj,
    states: list[ContainerState],
    address: str,
    *,
    ended: bool = False,
    outcome: Outcome | None = None,
) -> Obj:
    """Return the whole status; `address` once the pod has one.

    Until it has `ended`, with nothing of it left, its phase is no final one, though its conditions tell the end.
    """
    old, spec = pod.get("status", {}), pod["spec"]
    generation = pod["metadata"].get("generation", 1)
    inits, mains = [s for s in states if s.init], [s for s in states if not s.init]
    current = "Failed" if outcome else ending(inits, mains, ended)
    final = current in ("Failed", "Succeeded")
    phase = old.get("phase", "Pending") if final and not ended else current
    containers_ready = _containers_ready(inits, mains, current)
    wanted = [
        ("PodReadyToStartContainers", bool(address) and not final, {}),
        ("Initialized", *_initialized(inits, mains, current)),
        ("Ready", *_ready(spec, old, containers_ready)),
        ("ContainersReady", *containers_ready),
    ]
    if not any(c["type"] == "PodScheduled" for c in old.get("conditions", [])):
        wanted.append(("PodScheduled", True, {}))  # not by a scheduler: it was made for this node
    own = {kind for kind, _, _ in wanted}
    conditions = [_condition(old, generation, *w) for w in wanted]
    conditions += [c for c in old.get("conditions", []) if c["type"] not in own]
    status: Obj = {"observedGeneration": generation, "phase": phase, "conditions": conditions}
    if outcome:
        status |= {"reason": outcome.reason, "message": outcome.message}
    status |= {"hostIP": "127.0.0.1", "hostIPs": [{"ip": "127.0.0.1"}]}
    if address:
        status |= {"podIP": address, "podIPs": [{"ip": address}]}
    status["startTime"] = old.get("startTime", now())
    if inits:
        status["initContainerStatuses"] = [s.status for s in inits]
    status["containerStatuses"] = [s.status for s in mains]
    status["qosClass"] = old.get("qosClass", "BestEffort")
    return status


Verdict = tuple[bool, Obj]
"""Whether a condition holds, and its reason and message."""


def _containers_ready(inits: list[ContainerState], mains: list[ContainerState], current: str) -> Verdict:
    if current in ("Failed", "Succeeded"):
        return False, {"reason": "PodCompleted" if current == "Succeeded" else "PodFailed"}
    waiting = [s.name for s in (*inits, *mains) if not s.ready and (s.sidecar or not s.init)]
    if not waiting:
        return True, {}
    message = f"containers with unready status: [{' '.join(waiting)}]"
    return False, {"reason": "ContainersNotReady", "message": message}


def _ready(spec: Obj, old: Obj, containers_ready: Verdict) -> Verdict:
    if not containers_ready[0]:
        return containers_ready
    given = {c["type"]: c["status"] for c in old.get("conditions", [])}
    missing = []
    for gate in (g["conditionType"] for g in spec.get("readinessGates") or []):
        if gate not in given:
            missing.append(f'corresponding condition of pod readiness gate "{gate}" does not exist.')
        elif given[gate] != "True":
            missing.append(f'the status of pod readiness gate "{gate}" is not "True", but {given[gate]}')
    if not missing:
        return True, {}
    return False, {"reason": "ReadinessGatesNotReady", "message": ", ".join(missing)}


def _initialized(inits: list[ContainerState], mains: list[ContainerState], current: str) -> Verdict:
    if current == "Succeeded":
        return True, {"reason": "PodCompleted"}
    incomplete = [s.name for s in inits if not s.initialized]
    if not incomplete or any(s.container_id for s in mains):
        return True, {}
    message = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return False, {"reason": "ContainersNotInitialized", "message": message}


def _condition(old: Obj, generation: int, kind: str, held: bool, why: Obj) -> Obj:
    status = "True" if held else "False"
    known: Obj = next((c for c in old.get("conditions", []) if c["type"] == kind), {})
    since = known["lastTransitionTime"] if known.get("status") == status else now()
    condition: Obj = {"type": kind, "observedGeneration": generation, "status": status, "lastProbeTime": None}
    return condition | {"lastTransitionTime": since} | why


def lost(pod: Obj) -> Obj:
    """Return the status of a pod whose processes ended with its node: failed, with its containers' ends."""
    old = pod.get("status", {})
    lists = ("initContainerStatuses", "containerStatuses")
    states = {part: [_killed(status) for status in old[part]] for part in lists if part in old}
    conditions = []
    for condition in old.get("conditions", []):
        if condition["type"] in ("Ready", "ContainersReady", "PodReadyToStartContainers"):
            kept = {k: v for k, v in condition.items() if k != "message"}
            conditions.append(kept | {"status": "False", "reason": "PodFailed", "lastTransitionTime": now()})
        else:
            conditions.append(condition)
    disrupted = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": NODE_SHUTDOWN,
    }
    conditions.append(disrupted | {"lastProbeTime": None, "lastTransitionTime": now()})
    ending = {"phase": "Failed", "reason": "Terminated", "message": NODE_SHUTDOWN}
    final: Obj = old | ending | {"conditions": conditions} | states
    return final


def _killed(status: Obj) -> Obj:
    """Return a container's status after its machine went down."""
    if "terminated" in status.get("state", {}):
        return status
    started = status.get("state", {}).get("running", {}).get("startedAt", now())
    ended = {"exitCode": 137, "reason": "Error", "startedAt": started, "finishedAt": now()}
    return status | {"state": {"terminated": ended}, "ready": False, "started": False}
