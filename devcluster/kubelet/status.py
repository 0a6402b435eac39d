"""A pod's status from the state of its containers, as the kubelet writes it. Pure but for the clock."""

from dataclasses import dataclass, field

from devcluster.clock import now
from devcluster.resources import Obj

NODE_SHUTDOWN = "Pod was terminated in response to imminent node shutdown."


@dataclass
class ContainerState:
    name: str
    image: str
    state: Obj = field(default_factory=lambda: {"waiting": {"reason": "ContainerCreating"}})
    last_state: Obj = field(default_factory=dict)
    ready: bool = False
    started: bool = False
    restarts: int = 0
    image_id: str = ""
    container_id: str = ""
    ended: bool = False
    """It will not be started again."""

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
        return status | {"started": self.started}

    def wait(self, reason: str, message: str = "") -> None:
        if "terminated" in self.state:
            self.last_state = self.state
        self.state = {"waiting": {"reason": reason} | ({"message": message} if message else {})}
        self.ready = self.started = False

    def run(self, container_id: str) -> None:
        self.state = {"running": {"startedAt": now()}}
        self.container_id = container_id

    def end(self, code: int, reason: str, message: str = "") -> None:
        started = self.state.get("running", {}).get("startedAt", now())
        terminated: Obj = {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now()}
        if message:
            terminated["message"] = message
        if self.container_id:
            terminated["containerID"] = self.container_id
        self.state = {"terminated": terminated}
        self.ready = self.started = False


def phase(states: list[ContainerState], stopping: bool) -> str:
    if stopping or all(s.ended for s in states):
        codes = [s.state.get("terminated", {}).get("exitCode", 137) for s in states]
        return "Failed" if any(codes) else "Succeeded"
    never_ran = any("waiting" in s.state and not s.last_state for s in states)
    return "Pending" if never_ran else "Running"


def pod_status(
    pod: Obj, states: list[ContainerState], address: str, *, ended: bool = False, extra: Obj | None = None
) -> Obj:
    """The whole status; `ended` when no container will run again."""
    old = pod.get("status", {})
    generation = pod["metadata"].get("generation", 1)
    current = phase(states, ended)
    final = current in ("Failed", "Succeeded")
    waiting = [s.name for s in states if not s.ready]
    unready: Obj = {}
    if final:
        unready = {"reason": "PodCompleted" if current == "Succeeded" else "PodFailed"}
    elif waiting:
        names = " ".join(waiting)
        unready = {"reason": "ContainersNotReady", "message": f"containers with unready status: [{names}]"}
    running = any("running" in s.state for s in states)
    wanted = [
        ("PodReadyToStartContainers", bool(address) and not final, {}),
        ("Initialized", True, {"reason": "PodCompleted"} if current == "Succeeded" else {}),
        ("Ready", running and not waiting, unready),
        ("ContainersReady", running and not waiting, unready),
    ]
    conditions = [_condition(old, generation, *w) for w in wanted]
    conditions += [c for c in old.get("conditions", []) if c["type"] == "PodScheduled"]
    status: Obj = {"observedGeneration": generation, "phase": current, "conditions": conditions}
    status |= {"hostIP": "127.0.0.1", "hostIPs": [{"ip": "127.0.0.1"}]}
    if address:
        status |= {"podIP": address, "podIPs": [{"ip": address}]}
    status["startTime"] = old.get("startTime", now())
    status["containerStatuses"] = [s.status for s in states]
    status["qosClass"] = old.get("qosClass", "BestEffort")
    return status | (extra or {})


def _condition(old: Obj, generation: int, kind: str, held: bool, why: Obj) -> Obj:
    status = "True" if held else "False"
    known: Obj = next((c for c in old.get("conditions", []) if c["type"] == kind), {})
    since = known["lastTransitionTime"] if known.get("status") == status else now()
    condition: Obj = {"type": kind, "observedGeneration": generation, "status": status, "lastProbeTime": None}
    return condition | {"lastTransitionTime": since} | why


def lost(pod: Obj) -> Obj:
    """The status of a pod whose processes went with its node: over, and provably so."""
    old = pod.get("status", {})
    states = []
    for status in old.get("containerStatuses", []):
        running = status.get("state", {}).get("running", {})
        ended = {
            "exitCode": 137,
            "reason": "Error",
            "startedAt": running.get("startedAt", now()),
            "finishedAt": now(),
        }
        state = status["state"] if "terminated" in status.get("state", {}) else {"terminated": ended}
        states.append(status | {"state": state, "ready": False, "started": False})
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
    final: Obj = old | ending | {"conditions": conditions, "containerStatuses": states}
    return final
