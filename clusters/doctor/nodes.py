"""Findings about nodes, the GPUs that they announce and label, and the device plugins that announce them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from clusters.api import Api, list_if_served
from clusters.doctor.findings import Finding, fail, named, ok, warn
from clusters.nodes.gpus import RESOURCE
from clusters.nodes.inventory import NodeValues
from clusters.nodes.node_labels import MEMORY_MIB, PRODUCT
from clusters.transport import Json

# Labels of device plugins' pods, as in their makers' manifests and charts.
PLUGINS = (
    ("k8s-device-plugin", {"name": "nvidia-device-plugin-ds"}),
    ("k8s-device-plugin", {"app.kubernetes.io/name": "nvidia-device-plugin"}),
    ("gpu-operator", {"app": "nvidia-device-plugin-daemonset"}),
    ("HAMi", {"app.kubernetes.io/component": "hami-device-plugin"}),
    ("gpu-manager", {"name": "gpu-manager-ds"}),
)
RUNTIME = "nvidia"


def nodes(found: Sequence[NodeValues]) -> Iterator[Finding]:
    ready = usable(found)
    if not ready:
        yield fail(_("No node is ready."), _("Check `kubectl get nodes`."))
        return
    yield ok(_("%(ready)s of %(all)s nodes are ready.") % {"ready": len(ready), "all": len(found)})
    gpus: Counter[str] = Counter()
    for node in ready:
        product = node.labels.get(PRODUCT, "")
        for resource, amount in announced(node).items():
            gpus[f"{resource} ({product})" if product else resource] += amount
    if gpus:
        told = _(", ").join(f"{amount} × {name}" for name, amount in sorted(gpus.items()))
        yield ok(_("GPUs: %(gpus)s.") % {"gpus": told})
    else:
        yield warn(
            _("No node offers GPUs."),
            _("If some have them, install the NVIDIA device plugin and GPU Feature Discovery."),
        )
    yield from silent_about_gpus(ready)


def usable(found: Sequence[NodeValues]) -> list[NodeValues]:
    return [node for node in found if node.ready and not node.unschedulable]


def announced(node: NodeValues) -> dict[str, int]:
    return {name: amount for name, amount in node.allocatable.items() if RESOURCE.search(name) and amount}


def silent_about_gpus(ready: Sequence[NodeValues]) -> Iterator[Finding]:
    """Report GPUs without labels or without resources, which two programs set, and GPUs held for broken."""
    unlabelled = [node.name for node in ready if announced(node) and MEMORY_MIB not in node.labels]
    if unlabelled:
        yield warn(
            _("%(nodes)s have no labels for the memory and kind of their GPUs.")
            % {"nodes": named(unlabelled)},
            _("Install GPU Feature Discovery, or fill in the pools by hand."),
        )
    hidden = [node.name for node in ready if PRODUCT in node.labels and not announced(node)]
    if hidden:
        yield fail(
            _("%(nodes)s have GPUs according to their labels, but announce none.") % {"nodes": named(hidden)},
            _("Check the device plugin's pod there, and the node's driver and container toolkit."),
        )
    broken = [
        node.name
        for node in ready
        if any(
            RESOURCE.search(name) and amount > node.allocatable.get(name, 0)
            for name, amount in node.capacity.items()
        )
    ]
    if broken:
        yield warn(
            _("The device plugin marked some GPUs of %(nodes)s as broken.") % {"nodes": named(broken)},
            _("Check its log there. The mark is cleared only when the device plugin restarts."),
        )


# --- device plugins


def plugins(api: Api, found: Sequence[NodeValues]) -> Iterator[Finding]:
    """Report device plugins known by their pods' labels. Others show only in what they announce."""
    on_nodes: defaultdict[str, dict[str, Json]] = defaultdict(dict)
    for name, labels in PLUGINS:
        for pod in api.list("Pod", labels=labels):
            if node := pod["spec"].get("nodeName"):
                on_nodes[name][node] = pod
    for name, pods in sorted(on_nodes.items()):
        yield from of_plugin(name, pods)
    covered = {node for pods in on_nodes.values() for node in pods}
    for node in sorted(covered):
        both = sorted(name for name, pods in on_nodes.items() if node in pods)
        if len(both) > 1:
            yield fail(
                _("On %(node)s, %(plugins)s both offer the same GPUs.")
                % {"node": node, "plugins": _(", ").join(both)},
                _("Keep one of them off that node with its node selector."),
            )
    without = [node.name for node in usable(found) if PRODUCT in node.labels and node.name not in covered]
    if covered and without:
        yield warn(
            _("No device plugin runs on %(nodes)s, which have GPUs.") % {"nodes": named(without)},
            _("Check its DaemonSet's tolerations and node selector."),
        )


def of_plugin(name: str, pods: dict[str, Json]) -> Iterator[Finding]:
    versions = sorted(set(map(image_tag, pods.values())))
    facts = {"name": name, "count": len(pods), "version": _(", ").join(versions)}
    if len(versions) > 1:
        yield warn(
            _("%(name)s runs in several versions: %(version)s.") % facts,
            _("Finish its update, or check why its DaemonSet is stuck."),
        )
    else:
        yield ok(_("%(name)s %(version)s runs on %(count)d nodes.") % facts)
    unready = [node for node, pod in pods.items() if not is_ready(pod)]
    if unready:
        yield fail(
            _("%(name)s is not ready on %(nodes)s: GPUs there cannot be used.")
            % {"name": name, "nodes": named(unready)},
            _("Check its pod's log there."),
        )


def image_tag(pod: Json) -> str:
    image = str(pod["spec"]["containers"][0].get("image", ""))
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2] or "?"


def is_ready(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def runtime_classes(api: Api) -> Iterator[Finding]:
    """Report NVIDIA's runtime class. Pods must name it where it is not the nodes' default runtime."""
    names = {body["metadata"]["name"] for body in list_if_served(api, "RuntimeClass")}
    if RUNTIME in names:
        yield ok(
            _(
                "There is a runtime class %(name)s: name it in pools whose nodes do not have it as their default."
            )
            % {"name": RUNTIME}
        )
