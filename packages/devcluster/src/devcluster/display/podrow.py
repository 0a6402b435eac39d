"""Row of a pod in tables: the states of its containers in one word."""

from devcluster.display.printing import Row, age, name_of, short_time
from devcluster.resources import Obj
from devcluster.values.clock import age_seconds


def pod_row(pod: Obj) -> Row:
    spec, status = pod["spec"], pod.get("status", {})
    addresses = status.get("podIPs") or [{}]
    return [
        name_of(pod),
        _ready(pod),
        _state(pod),
        _restarts(pod),
        age(pod),
        addresses[0].get("ip") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        _gates(pod),
    ]


def _sidecars(pod: Obj) -> set[str]:
    inits = pod["spec"].get("initContainers") or []
    return {c["name"] for c in inits if c.get("restartPolicy") == "Always"}


def _ready(pod: Obj) -> str:
    sidecars, status = _sidecars(pod), pod.get("status", {})
    containers = [c for c in status.get("initContainerStatuses", []) if c["name"] in sidecars]
    containers += status.get("containerStatuses", [])
    ready = sum(bool(c.get("ready") and "running" in c["state"]) for c in containers)
    return f"{ready}/{len(pod['spec']['containers']) + len(sidecars)}"


def _holds(pod: Obj, kind: str) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)


def _state(pod: Obj) -> str:
    status = pod.get("status", {})
    phase = status.get("phase", "Unknown")
    word = status.get("reason") or phase
    if any(c.get("reason") == "SchedulingGated" for c in status.get("conditions", [])):
        word = "SchedulingGated"
    word = _initializing(pod) or _running(pod, word)
    if "deletionTimestamp" in pod["metadata"]:
        if status.get("reason") == "NodeLost":
            return "Unknown"
        return word if phase in ("Succeeded", "Failed") else "Terminating"
    return word


def _initializing(pod: Obj) -> str:
    """Return the first init container that is not done, and its progress; empty once all are done."""
    if _holds(pod, "Initialized"):
        return ""
    sidecars = _sidecars(pod)
    for number, container in enumerate(pod.get("status", {}).get("initContainerStatuses", [])):
        state = container["state"]
        ended, waits = state.get("terminated"), state.get("waiting", {}).get("reason", "PodInitializing")
        if (ended and ended["exitCode"] == 0) or (container["name"] in sidecars and container.get("started")):
            continue
        if ended:
            return f"Init:{ended.get('reason') or _code(ended)}"
        if waits != "PodInitializing":
            return f"Init:{waits}"
        return f"Init:{number}/{len(pod['spec']['initContainers'])}"
    return ""


def _code(ended: Obj) -> str:
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended['exitCode']}"


def _running(pod: Obj, word: str) -> str:
    """Return the first container's reason, if any has one; "Completed" is replaced if others still run or failed."""
    failed, runs = "", False
    for container in reversed(pod.get("status", {}).get("containerStatuses", [])):
        state = container["state"]
        if reason := state.get("waiting", {}).get("reason"):
            word = reason
        elif ended := state.get("terminated"):
            word = ended.get("reason") or _code(ended)
            failed = word if ended["exitCode"] else failed
        elif container.get("ready") and "running" in state:
            runs = True
    if word != "Completed":
        return word
    if runs and _holds(pod, "Ready"):
        return "Running"
    return failed or ("NotReady" if runs else word)


def _restarts(pod: Obj) -> str:
    """Return the number of restarts, and the age of the last one."""
    sidecars, status = _sidecars(pod), pod.get("status", {})
    inits = status.get("initContainerStatuses", [])
    if not _initializing(pod):
        inits = [c for c in inits if c["name"] in sidecars] + status.get("containerStatuses", [])
    count = sum(c.get("restartCount", 0) for c in inits)
    ends = [c.get("lastState", {}).get("terminated", {}).get("finishedAt") for c in inits]
    last = max((end for end in ends if end), default="")
    return f"{count} ({short_time(age_seconds(last))} ago)" if count and last else str(count)


def _gates(pod: Obj) -> str:
    gates = pod["spec"].get("readinessGates") or []
    held = sum(_holds(pod, gate["conditionType"]) for gate in gates)
    return f"{held}/{len(gates)}" if gates else "<none>"
