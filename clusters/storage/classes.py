"""Judgement of storage classes: what each can do, by its object and its provisioner. Pure.

Kubernetes does not say which access modes a class has, nor whether it enforces a volume's size: Berth knows the common
drivers, and an admin names the other classes in the cluster's settings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# Parts of provisioners' names whose volumes several nodes can mount at once, each from its driver's documentation.
SHARED_DRIVERS = (
    "cephfs.csi.ceph.com", "nfs.csi.ceph.com", "nfs.csi.k8s.io", "nfs-subdir-external-provisioner",
    "efs.csi.aws.com", "fsx.csi.aws.com", "file.csi.azure.com", "filestore.csi.storage.gke.io", "csi.juicefs.com",
    "driver.longhorn.io", "spectrumscale.csi.ibm.com", "csi.weka.io", "beegfs.csi.netapp.com", "nas.csi.",
    "org.democratic-csi.nfs", "csi.vastdata.com", "lustre", "hostpath.csi.k8s.io",
)  # fmt: skip
# Those that give a volume all the room there is, whatever was requested.
UNLIMITED_DRIVERS = (
    "rancher.io/local-path", "minikube-hostpath", "docker.io/hostpath", "hostpath.csi.k8s.io", "openebs.io/local",
    "nfs.csi.k8s.io", "nfs-subdir-external-provisioner", "microk8s.io/hostpath",
)  # fmt: skip

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


@dataclass(frozen=True)
class Class:
    """A storage class. `binds_first`: its volumes are made on the node of the first run that mounts them."""

    name: str
    can_grow: bool
    binds_first: bool
    is_shared: bool
    is_enforced: bool


def judge(body: Mapping[str, Any], shared_classes: Collection[str] = ()) -> Class:
    """Judge a StorageClass. `shared_classes`: names of those that an admin says several nodes can mount."""
    name, provisioner = body["metadata"]["name"], body.get("provisioner", "")
    return Class(
        name=name,
        can_grow=bool(body.get("allowVolumeExpansion")),
        binds_first=body.get("volumeBindingMode") == "WaitForFirstConsumer",
        is_shared=name in shared_classes or any(part in provisioner for part in SHARED_DRIVERS),
        is_enforced=not any(part in provisioner for part in UNLIMITED_DRIVERS),
    )


def is_default(body: Mapping[str, Any]) -> bool:
    return (body["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"


def suggested(bodies: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """Return the class for homes, which several nodes should mount, and the one for local disks; "" is the default.

    Without a shared class, or one that binds first, it is the cluster's default, or else the only one there is.
    """
    ordered = sorted(bodies, key=lambda body: (not is_default(body), body["metadata"]["name"]))
    classes = [judge(body) for body in ordered]
    only = classes[0].name if classes and not is_default(ordered[0]) else ""
    home = next((one.name for one in classes if one.is_shared), only)
    disk = next((one.name for one in classes if one.binds_first and not one.is_shared), only)
    return home, disk
