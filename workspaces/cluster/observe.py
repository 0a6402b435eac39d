"""State of a run, derived from the cluster's objects: how many of the ten steps have their evidence, which trouble
there is, and whether the run's end is proven. Pure: from raw objects to an `Observation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusters.causes.cause import Diagnosis
from clusters.pods.ends import condition, end_proven
from workloads.pods.status import (
    Object,
    accepted,
    container_status,
    end_reason,
    ended_from_outside,
    explained_end,
    has_image,
    has_started,
    is_of,
)
from workloads.pods.troubles import Snapshot, Trouble, last_end, trouble
from workspaces.models import STEPS


@dataclass(frozen=True, kw_only=True)
class Observation:
    done: int
    trouble: Trouble | None = None
    node: str = ""
    host: str = ""
    # Where Jupyter is, if not at `host`.
    jupyter_host: str = ""
    jupyter_port: int | None = None
    ssh_port: int | None = None
    restarts: int = 0
    # How the container last ended before the node started it again.
    last_end: Diagnosis | None = None
    # Set when the pod ended unasked: the reason in one word, and an explanation if the node reported more.
    ended: str = ""
    # The pod was ended (an eviction, a node that went down, a deletion), rather than its program ended.
    was_ended: bool = False
    explained_end: Diagnosis | None = None


def observe(seen: Snapshot, *, run: str, claims_wanted: int, node_address: str = "") -> Observation:
    """Return how far the run got. Steps count only in order: the first without evidence is the current one."""
    pod = seen.pod
    host, ports = address(seen.service, pod, node_address)
    jupyter_host, jupyter_port = jupyter_address(seen.service, pod, ports)
    evidence = [
        True,  # request: there is a row
        True,  # admission: only an admitted claim is brought up
        len(seen.volume_claims) >= claims_wanted
        and all(accepted(claim, seen.binding_modes) for claim in seen.volume_claims),
        bool(pod and is_of(run, pod)),
        bool(pod and pod["spec"].get("nodeName")),
        bool(pod and has_image(pod)),
        bool(pod and (has_started(pod) or condition(pod, "PodReadyToStartContainers") == "True")),
        bool(pod and condition(pod, "Ready") == "True"),
        bool(host),
    ]
    done = next((index for index, there in enumerate(evidence) if not there), len(STEPS))
    ended = "" if pod is None or not end_proven(pod) else end_reason(pod)
    return Observation(
        done=done,
        trouble=None if done == len(STEPS) else trouble(seen),
        node=pod["spec"].get("nodeName", "") if pod else "",
        host=host,
        jupyter_host=jupyter_host,
        jupyter_port=jupyter_port,
        ssh_port=ports.get("ssh"),
        restarts=container_status(pod).get("restartCount", 0) if pod else 0,
        last_end=last_end(pod) if pod else None,
        ended=ended,
        was_ended=bool(pod and ended and ended_from_outside(pod)),
        explained_end=explained_end(pod) if pod and ended else None,
    )


def address(service: Object | None, pod: Object | None, node_address: str = "") -> tuple[str, dict[str, int]]:
    """Host, and ports by name; ("", {}) while there is none. For a NodePort: `node_address`, else the pod's node."""
    if service is None:
        return "", {}
    ports = service["spec"].get("ports", [])
    if service["spec"].get("type") == "NodePort":
        host = node_address or (pod.get("status", {}).get("hostIP", "") if pod else "")
        return host, {port["name"]: port["nodePort"] for port in ports if host and port.get("nodePort")}
    if service["spec"].get("type") == "ClusterIP":
        host = service["spec"].get("clusterIP") or ""
        return host, {port["name"]: port["port"] for port in ports if host}
    ingress = service.get("status", {}).get("loadBalancer", {}).get("ingress") or [{}]
    host = ingress[0].get("ip") or ingress[0].get("hostname") or ""
    return host, {port["name"]: port["port"] for port in ports if host}


def jupyter_address(
    service: Object | None, pod: Object | None, ports: Mapping[str, int]
) -> tuple[str, int | None]:
    """Return where Jupyter is: at the Service's own host (then ""), else at the pod's, if it offers any there."""
    published = {port["name"] for port in service["spec"].get("ports", [])} if service else set()
    if "jupyter" in published or pod is None:
        return "", ports.get("jupyter")
    containers = pod["spec"].get("containers", [])
    offered = [port for container in containers for port in container.get("ports", [])]
    port = next((port["containerPort"] for port in offered if port.get("name") == "jupyter"), None)
    ip = pod.get("status", {}).get("podIP", "")
    return (ip, port) if ip and port else ("", None)
