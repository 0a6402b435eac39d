"""Versions that have to fit each other, from what nodes and pods say of themselves. Pure.

What differs between nodes that could run the same, and what its makers say does not go together, is told to admins.
Each rule names its source. A version that cannot be read is left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from clusters.models import Node, PartPod
from clusters.nodes.node_labels import PRODUCT
from clusters.nodes.parts import BY_NAME
from monitoring.health.rules import About, Verdict
from monitoring.parts.rules import placed

Version = tuple[int, ...]
# Fields of a node's status that should be the same on nodes with the same GPUs.
SAME = {
    "kernelVersion": "kernel",
    "containerRuntimeVersion": "container runtime",
    "kubeletVersion": "kubelet",
}


@dataclass(frozen=True)
class Inventory:
    """What runs in one cluster."""

    api: str = ""
    nodes: Sequence[Node] = ()
    pods: Sequence[PartPod] = ()
    # Driver's version by node, from its agent or its labels.
    drivers: Mapping[str, str] = field(default_factory=dict)
    # Versions of Ceph's servers as its exporter tells them, where Ceph runs outside the cluster.
    ceph: frozenset[str] = frozenset()
    # Ways in which pools share GPUs.
    sharing: frozenset[str] = frozenset()

    def versions(self, part: str) -> dict[str, list[PartPod]]:
        found: defaultdict[str, list[PartPod]] = defaultdict(list)
        for pod in self.pods:
            if pod.part == part and pod.version:
                found[pod.version].append(pod)
        return dict(found)


def read(text: str) -> Version:
    """Return the numbers of a version, as (1, 7, 20) for "containerd://1.7.20-k3s1"; () if there are none."""
    match = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(map(int, match.group().split("."))) if match else ()


def verdicts(found: Inventory) -> list[Verdict]:
    return [
        *nodes_differ(found),
        *parts_differ(found),
        *(verdict for rule in UNFIT for verdict in rule(found)),
    ]


# --- what differs


def nodes_differ(found: Inventory) -> Iterator[Verdict]:
    """Yield what differs among nodes with the same kind of GPU: a run may be started on any of them."""
    alike: defaultdict[str, list[Node]] = defaultdict(list)
    for node in found.nodes:
        alike[node.labels.get(PRODUCT, "")].append(node)
    for product, nodes in sorted(alike.items()):
        facts = {what: {node.name: node.system.get(key, "") for node in nodes} for key, what in SAME.items()}
        facts["NVIDIA driver"] = {node.name: found.drivers.get(node.name, "") for node in nodes}
        for what, of_nodes in facts.items():
            if what == "kernel" and not product:
                continue  # nodes without GPUs may be of any age
            if told := _odd(of_nodes):
                usual, others, names = told
                data = {"what": what, "kind": product, "usual": usual, "others": others, **placed(names)}
                yield Verdict(About.VERSIONS, f"{what} {product}".strip(), "node_versions_differ", data=data)


def _odd(of_nodes: Mapping[str, str]) -> tuple[str, str, list[str]] | None:
    """Return the usual value, the others, and the nodes with these; None if all are the same."""
    by_value: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in sorted(of_nodes.items()):
        if value:
            by_value[value].append(name)
    if len(by_value) < 2:
        return None
    usual = max(sorted(by_value), key=lambda value: len(by_value[value]))
    others = sorted(by_value.keys() - {usual})
    return usual, ", ".join(others), [name for value in others for name in by_value[value]]


def parts_differ(found: Inventory) -> Iterator[Verdict]:
    """Yield parts that run in several versions: node plugin and controller, or nodes after an update that is stuck."""
    for part in BY_NAME:
        versions = found.versions(part)
        if len({_plain(version) for version in versions}) > 1:
            usual = max(sorted(versions), key=lambda version: len(versions[version]))
            odd = [pod for version, pods in sorted(versions.items()) if version != usual for pod in pods]
            data = {"part": part, "versions": ", ".join(sorted(versions)), **placed(_places(odd))}
            yield Verdict(About.VERSIONS, part, "part_versions_differ", data=data)


def _plain(version: str) -> str:
    """Return the version without what its builds differ in, as in v1.17.8-ubuntu20.04 and v1.17.8-ubi8."""
    numbers = read(version)
    return ".".join(map(str, numbers)) if numbers else version


def _places(pods: Sequence[PartPod]) -> list[str]:
    return [pod.node or str(pod) for pod in pods]


# --- what does not fit


def _unfit(problem: str, names: Sequence[str]) -> Verdict:
    return Verdict(
        About.VERSIONS, problem[:500], "versions_unfit", data={"problem": problem, **placed(names)}
    )


def _together(problems: Iterable[tuple[str, str]]) -> Iterator[Verdict]:
    """Yield each problem once, with all of its nodes."""
    nodes: defaultdict[str, list[str]] = defaultdict(list)
    for problem, node in problems:
        nodes[problem].append(node)
    for problem, names in sorted(nodes.items()):
        yield _unfit(problem, names)


def kubelets(found: Inventory) -> Iterator[Verdict]:
    """https://kubernetes.io/releases/version-skew-policy/: no kubelet is newer than the API, nor 3 minors older."""
    api = read(found.api)[:2]
    if len(api) == 2:
        yield from _together(
            (f"kubelet {_text(version)}, Kubernetes {_text(api)}", node)
            for node, version in _by_node(found, "kubeletVersion")
            if version[:2] > api or (version[0] == api[0] and version[1] < api[1] - 3)
        )


# By minor of Kubernetes: the least patch of each minor of containerd that its makers support with it.
# https://containerd.io/releases/#kubernetes-support
CONTAINERD = {29: {6: 27, 7: 11}, 30: {6: 28, 7: 13}, 31: {6: 34, 7: 20}}


def containerds(found: Inventory) -> Iterator[Verdict]:
    kubelet_of = dict(_by_node(found, "kubeletVersion"))
    yield from _together(
        (f"containerd {_text(version)}, kubelet {_text(kubelet_of[node])}", node)
        for node, version in _by_node(found, "containerRuntimeVersion", "containerd://")
        if node in kubelet_of and is_too_old(version, kubelet_of[node])
    )


def is_too_old(containerd: Version, kubelet: Version) -> bool:
    known = CONTAINERD.get(min(kubelet[1], max(CONTAINERD)), {})
    if containerd[0] != 1 or len(containerd) < 3 or not known:
        return False
    least = known.get(containerd[1])
    return containerd[1] < min(known) if least is None else containerd[2] < least


def toolkits(found: Inventory) -> Iterator[Verdict]:
    """NVIDIA's bulletin of July 2025 (CVE-2025-23266): before 1.17.8 a container may take over its node."""
    for text, pods in found.versions("NVIDIA container toolkit").items():
        if () < read(text) < (1, 17, 8):
            yield _unfit(f"NVIDIA container toolkit {text}, CVE-2025-23266: 1.17.8", _places(pods))


def schedulers(found: Inventory) -> Iterator[Verdict]:
    """HAMi's guide to its installation: the Kubernetes scheduler beside it has the cluster's own version."""
    api = read(found.api)[:2]
    if len(api) == 2:
        yield from _together(
            (f"kube-scheduler {_text(beside)} ({pod.part}), Kubernetes {_text(api)}", pod.node or str(pod))
            for pod in found.pods
            if pod.part != "kube-scheduler" and (beside := read(pod.scheduler_version)[:2]) and beside != api
        )


# https://github.com/rook/rook/releases: 1.13 (CSI 3.10) ends Pacific (16), 1.16 (CSI 3.13) ends Quincy (17).
CEPH_OF_CSI = (((3, 13), (18,)), ((3, 10), (17,)))


def ceph_servers(found: Inventory) -> Iterator[Verdict]:
    servers = sorted({*found.versions("Ceph"), *found.ceph})
    for text, pods in found.versions("Ceph CSI").items():
        needed = next((ceph for csi, ceph in CEPH_OF_CSI if read(text) >= csi), ())
        old = [server for server in servers if () < read(server) < needed]
        if old:
            yield _unfit(f"Ceph CSI {text}, Ceph {', '.join(old)}", _places(pods))
    if len({read(server)[:1] for server in servers if read(server)}) > 1:
        yield _unfit(f"Ceph {', '.join(servers)}", [])


# The kernel's CephFS knows quotas, and so sizes of volumes, from 4.17 on: https://docs.ceph.com/en/latest/cephfs/quota/
QUOTAS = (4, 17)


def ceph_clients(found: Inventory) -> Iterator[Verdict]:
    if found.versions("Ceph CSI"):
        yield from _together(
            (f"kernel {_text(version)}, CephFS: {_text(QUOTAS)}", node)
            for node, version in _by_node(found, "kernelVersion")
            if version[:2] < QUOTAS
        )


def device_plugins(found: Inventory) -> Iterator[Verdict]:
    """https://github.com/NVIDIA/k8s-device-plugin/releases/tag/v0.15.0: the first that shares GPUs by MPS."""
    if "mps" in found.sharing:
        for text, pods in found.versions("NVIDIA device plugin").items():
            if () < read(text) < (0, 15):
                yield _unfit(f"NVIDIA device plugin {text}, MPS: 0.15.0", _places(pods))


Rule = Callable[[Inventory], Iterator[Verdict]]
UNFIT: tuple[Rule, ...] = (
    kubelets,
    containerds,
    toolkits,
    schedulers,
    ceph_servers,
    ceph_clients,
    device_plugins,
)


def _by_node(found: Inventory, key: str, prefix: str = "") -> Iterator[tuple[str, Version]]:
    for node in found.nodes:
        told = node.system.get(key, "")
        if told.startswith(prefix) and (version := read(told)):
            yield node.name, version


def _text(version: Version) -> str:
    return ".".join(map(str, version))
