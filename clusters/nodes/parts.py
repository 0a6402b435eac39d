"""Parts of a cluster that Berth depends on, known by the images of their pods: what runs where, in which version.

The watch of pods sees every pod anyway; of these, ours or not, a row is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from clusters.measures import parse_time
from clusters.models import PartPod
from clusters.nodes.inventory import ENDED, SPAN, Table, checked_name, without_nul
from clusters.transport import Json

LONGEST_DETAIL, LONGEST_VERSION = 300, 64
TENANTS = "berth-"  # prefix of their namespaces


@dataclass(frozen=True)
class Part:
    """Part of a cluster: its name, as its makers write it, what it is for, and how its images are called."""

    name: str
    role: str  # gpus, storage, network, scheduler, dns, addresses, tools
    images: str


# The first that matches; a pod of HAMi's scheduler also holds one of Kubernetes' own.
PARTS = (
    Part("HAMi", "gpus", r"(?:projecthami|4pdosc)/(?:hami|k8s-(?:device-plugin|vdevice|vgpu))|(?:^|/)hami$"),
    Part("NVIDIA device plugin", "gpus", r"k8s-device-plugin|nvidia-device-plugin"),
    Part("gpu-manager", "gpus", r"gpu-manager|gpu-admission"),
    Part("AMD GPU device plugin", "gpus", r"rocm/k8s-device-plugin|amdgpu-device-plugin"),
    Part("GPU Feature Discovery", "tools", r"gpu-feature-discovery"),
    Part("NVIDIA container toolkit", "gpus", r"(?:^|/)container-toolkit$"),
    Part("NVIDIA MIG manager", "gpus", r"k8s-mig-manager"),
    Part("dcgm-exporter", "tools", r"dcgm-exporter"),
    Part("Ceph CSI", "storage", r"(?:^|/)cephcsi(?:-operator)?$"),
    Part("Ceph", "storage", r"(?:^|/)ceph/(?:ceph|daemon)$"),
    Part("Rook", "storage", r"rook/ceph$"),
    Part("NFS CSI driver", "storage", r"(?:^|/)nfsplugin$|csi-driver-nfs"),
    Part("SMB CSI driver", "storage", r"(?:^|/)smbplugin$"),
    Part("TopoLVM", "storage", r"topolvm"),
    Part("OpenEBS", "storage", r"openebs/(?:lvm-driver|zfs-driver|provisioner|mayastor)"),
    Part("Longhorn", "storage", r"longhorn-(?:manager|csi|instance-manager|engine)"),
    Part("local-path-provisioner", "storage", r"local-path-provisioner"),
    Part("Calico", "network", r"calico/(?:node|kube-controllers|typha)$"),
    Part("Cilium", "network", r"cilium/(?:cilium|operator(?:-generic)?)$"),
    Part("Flannel", "network", r"(?:^|/)flannel$"),
    Part("Kube-OVN", "network", r"kubeovn/kube-ovn"),
    Part("Antrea", "network", r"antrea/antrea-"),
    Part("Multus", "network", r"multus-cni"),
    Part("kube-proxy", "network", r"(?:^|/)kube-proxy$"),
    Part("kube-scheduler", "scheduler", r"(?:^|/)kube-scheduler$"),
    Part("Volcano", "scheduler", r"(?:^|/)vc-(?:scheduler|controller-manager)$"),
    Part("Kueue", "scheduler", r"(?:^|/)kueue$"),
    Part("CoreDNS", "dns", r"(?:^|/)coredns$"),
    Part("kube-dns", "dns", r"k8s-dns-(?:kube-dns|node-cache)"),
    Part("MetalLB", "addresses", r"metallb/(?:speaker|controller)$|metallb-(?:speaker|controller)"),
)
BY_NAME = {part.name: part for part in PARTS}
_IMAGES = [re.compile(part.images) for part in PARTS]
# Thousands of pods run from a few hundred images.
KNOWN_IMAGES = 4096


@dataclass(frozen=True)
class PartValues:
    uid: str
    part: str
    namespace: str
    name: str
    node: str
    owner: str
    version: str
    scheduler_version: str
    ready: bool
    unready_since: datetime | None
    restarts: int
    crashed_at: datetime | None
    detail: str


def split_image(image: str) -> tuple[str, str]:
    """Return the image's path without its registry's host, digest and tag, and the tag."""
    plain = image.partition("@")[0]
    head, slash, last = plain.rpartition("/")
    name, _colon, tag = last.partition(":")
    return f"{head}{slash}{name}", tag


def part_of(images: list[str]) -> tuple[Part, str] | None:
    """Return the part to which these images belong, and its version; None if it is none that is known."""
    found = min(((number, image) for image in images if (number := _number(image)) is not None), default=None)
    return (PARTS[found[0]], split_image(found[1])[1]) if found else None


@lru_cache(KNOWN_IMAGES)
def _number(image: str) -> int | None:
    """Return the place in PARTS of the part to which an image belongs."""
    path = split_image(image)[0]
    return next((number for number, pattern in enumerate(_IMAGES) if pattern.search(path)), None)


def part_values(body: Json) -> PartValues | None:
    """Return what is known of a part's pod; None for other pods, and for one that ended or is going away.

    A tenant's pod is none, whatever its image is called.
    """
    metadata, spec, status = body["metadata"], body["spec"], body.get("status") or {}
    if str(metadata.get("namespace", "")).startswith(TENANTS):
        return None
    containers = spec.get("containers") or []
    images = [str(one.get("image", "")) for one in containers]
    found = part_of(images)
    if found is None or status.get("phase") in ENDED or metadata.get("deletionTimestamp"):
        return None
    part, version = found
    statuses = [one for one in status.get("containerStatuses") or [] if isinstance(one, dict)]
    conditions = {one.get("type"): one for one in status.get("conditions") or []}
    ready = conditions.get("Ready", {})
    is_ready = ready.get("status") == "True"
    scheduler = next((tag for path, tag in map(split_image, images) if path.endswith("/kube-scheduler")), "")
    return PartValues(
        uid=checked_name(metadata["uid"]),
        part=part.name,
        namespace=checked_name(metadata["namespace"]),
        name=checked_name(metadata["name"]),
        node=str(spec.get("nodeName") or ""),
        owner=_owner(metadata),
        version=without_nul(version)[:LONGEST_VERSION],
        scheduler_version=without_nul(scheduler)[:LONGEST_VERSION],
        ready=is_ready,
        unready_since=None if is_ready else _unready_since(ready, metadata),
        restarts=sum(int(one.get("restartCount") or 0) for one in statuses),
        crashed_at=max(filter(None, map(_crashed_at, statuses)), default=None),
        detail="" if is_ready else _detail(conditions, statuses),
    )


def _owner(metadata: Json) -> str:
    """Return kind/name of what made the pod; of a Deployment's pod, that of its ReplicaSet without the hash."""
    for one in metadata.get("ownerReferences") or []:
        if one.get("controller"):
            name = str(one.get("name", ""))
            if one.get("kind") == "ReplicaSet":
                name = name.rpartition("-")[0] or name
            return f"{one.get('kind', '')}/{name}"[:300]
    return ""


def _unready_since(ready: Json, metadata: Json) -> datetime | None:
    return parse_time(ready.get("lastTransitionTime")) or parse_time(metadata.get("creationTimestamp"))


def _crashed_at(status: Json) -> datetime | None:
    """Return when the container last ended with an error."""
    ends = [(status.get(key) or {}).get("terminated") or {} for key in ("state", "lastState")]
    failed = [parse_time(end.get("finishedAt")) for end in ends if end.get("exitCode")]
    return max(filter(None, failed), default=None)


def _detail(conditions: dict[Any, Json], statuses: list[Json]) -> str:
    """Return why it is not ready, in Kubernetes' words, without times that change."""
    told = next(_reasons(conditions, statuses), "")
    return without_nul(SPAN.sub("…", told))[:LONGEST_DETAIL]


def _reasons(conditions: dict[Any, Json], statuses: list[Json]) -> Iterator[str]:
    for status in statuses:
        for state in ("waiting", "terminated"):
            told = (status.get("state") or {}).get(state) or {}
            if reason := told.get("reason"):
                yield ": ".join(filter(None, (str(reason), str(told.get("message") or ""))))
    for condition in ("PodScheduled", "Ready"):
        one = conditions.get(condition, {})
        if one.get("status") == "False" and one.get("message"):
            yield str(one["message"])


class PartTable(Table[PartValues]):
    """PartPod rows of one cluster."""

    kind, model, key, shape = "Pod", PartPod, "uid", PartValues

    def replace(self, listed: Any) -> None:
        self._replace(listed)

    def put(self, body: Json) -> None:
        values = part_values(body)
        if values is None:
            self.remove(body)
        else:
            self._put(values)

    def remove(self, body: Json) -> None:
        uid = body["metadata"]["uid"]
        if self._rows.pop(uid, None) is not None:
            self._delete(uid)
