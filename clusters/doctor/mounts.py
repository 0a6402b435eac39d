"""Findings about pods that may hold a volume on a node after its run: private mounts of the node's root, and storage
drivers of different versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice

from django.utils.translation import gettext as _

from clusters.api import Api
from clusters.doctor.findings import Finding, named, warn
from clusters.transport import Json

MOST_PODS = 10_000
# Paths beneath which kubelets mount volumes, or that have them beneath.
ABOVE_MOUNTS = ("/", "/var", "/var/lib", "/var/lib/kubelet", "/var/lib/kubelet/pods")
PLUGINS = ("/var/lib/kubelet/plugins", "/var/lib/kubelet/plugins_registry")


def mounts(api: Api) -> Iterator[Finding]:
    private: set[str] = set()
    images: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for pod in islice(api.each("Pod"), MOST_PODS):
        name = f"{pod['metadata'].get('namespace', '')}/{owner_of(pod)}"
        if holds_privately(pod):
            private.add(name)
        if is_storage_plugin(pod):
            for container in pod["spec"]["containers"]:
                images[name, container["name"]].add(container.get("image", ""))
    if private:
        yield warn(
            _(
                "%(pods)s mount the node's root and do not see what is unmounted later, so they may hold a volume."
            )
            % {"pods": named(private)},
            _("Set mountPropagation: HostToContainer on that mount."),
        )
    mixed = {name for (name, _container), found in images.items() if len(found) > 1}
    if mixed:
        yield warn(
            _("The storage drivers %(pods)s run in different versions.") % {"pods": named(mixed)},
            _("Let the DaemonSet finish its update, and look for nodes where its pod did not restart."),
        )


def holds_privately(pod: Json) -> bool:
    """Return True if a container mounts the node's root, or what kubelets mount below, without following unmounts."""
    above = volumes_at(pod, ABOVE_MOUNTS)
    return any(
        mount["name"] in above and mount.get("mountPropagation", "None") == "None"
        for container in pod["spec"]["containers"]
        for mount in container.get("volumeMounts") or ()
    )


def is_storage_plugin(pod: Json) -> bool:
    """Return True for a pod of a DaemonSet that has its socket among the kubelet's plugins."""
    is_daemon = any(
        owner.get("kind") == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or ()
    )
    return is_daemon and bool(volumes_at(pod, PLUGINS, below=True))


def volumes_at(pod: Json, paths: tuple[str, ...], *, below: bool = False) -> set[str]:
    """Return the names of the pod's volumes that are one of these folders of the node; or, `below`, lie in one."""
    found = set()
    for volume in pod["spec"].get("volumes") or ():
        path = (volume.get("hostPath") or {}).get("path", "").rstrip("/") or "/"
        if "hostPath" in volume and (
            path in paths or (below and path.startswith(tuple(f"{one}/" for one in paths)))
        ):
            found.add(volume["name"])
    return found


def owner_of(pod: Json) -> str:
    """Return the name of what made the pod: one name for all pods of a DaemonSet."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return str(next((owner["name"] for owner in owners), pod["metadata"]["name"]))
