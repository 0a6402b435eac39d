"""Findings about storage classes for homes and disks, and whether nodes can mount their volumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.utils.translation import gettext as _

from clusters.api import Api, list_if_served
from clusters.doctor.findings import Finding, fail, named, ok, warn
from clusters.kinds import SNAPSHOTS
from clusters.models import Cluster
from clusters.storage.classes import Class, is_default, judge
from clusters.transport import Json, Objects


def storage(api: Api, cluster: Cluster) -> Iterator[Finding]:
    classes = {body["metadata"]["name"]: body for body in api.list("StorageClass")}
    defaults = sorted(name for name, body in classes.items() if is_default(body))
    homes, disks = (chosen or next(iter(defaults), "") for chosen in (cluster.home_class, cluster.disk_class))
    datasets = cluster.dataset_class or homes
    yield from of_purpose(_("homes"), homes, classes, local=False)
    yield from of_purpose(_("local disks"), disks, classes, local=True)
    if datasets != homes:
        yield from of_purpose(_("datasets"), datasets, classes, local=False)
    if len(defaults) > 1:
        yield warn(
            _("Several storage classes are marked as the default: %(names)s.")
            % {"names": _(", ").join(defaults)},
            _("Keep one: Kubernetes takes the newest of them."),
        )
    used = [classes[name] for name in dict.fromkeys((homes, disks, datasets)) if name in classes]
    for name in dict.fromkeys((homes, datasets)):
        if name in classes:
            yield from sharing(judge(classes[name], cluster.shared_classes))
    for body in used:
        yield from limits(judge(body))
    yield from drivers(api, used)
    yield from snapshots(api, used)


def of_purpose(purpose: str, name: str, classes: Mapping[str, Json], *, local: bool) -> Iterator[Finding]:
    facts = {"name": name, "purpose": purpose}
    if not name:
        yield fail(
            _("There is no storage class for %(purpose)s: none is set, and the cluster has no default one.")
            % facts,
            _("Name one in the cluster's settings, or mark one as the default."),
        )
    elif name not in classes:
        yield fail(
            _("The storage class %(name)s for %(purpose)s does not exist.") % facts,
            _("The cluster has: %(names)s.") % {"names": _(", ").join(sorted(classes)) or "–"},
        )
    else:
        yield ok(_("Storage class for %(purpose)s: %(name)s.") % facts)
        yield from fitness(classes[name], local=local)


def fitness(storage_class: Json, *, local: bool) -> Iterator[Finding]:
    name = {"name": storage_class["metadata"]["name"]}
    if local and storage_class.get("volumeBindingMode", "Immediate") != "WaitForFirstConsumer":
        yield warn(
            _(
                "%(name)s binds immediately, so a disk may be created on a node without room for its workspace."
            )
            % name,
            _("For local disks, use a class with volumeBindingMode: WaitForFirstConsumer."),
        )
    if not storage_class.get("allowVolumeExpansion"):
        yield warn(
            _("Volumes of %(name)s cannot grow.") % name,
            _("Set allowVolumeExpansion: true on it, if its driver can."),
        )


def sharing(found: Class) -> Iterator[Finding]:
    """Report whether several nodes can mount a volume of the class at once."""
    name = {"name": found.name}
    if found.is_shared:
        yield ok(_("Several nodes can mount a volume of %(name)s at once.") % name)
        return
    yield warn(
        _(
            "%(name)s is not known to let several nodes mount a volume at once: runs that share one wait for each "
            "other."
        )
        % name,
        _(
            "Use a class of a network file system for homes and datasets. If this is one, name it in the cluster's "
            "settings."
        ),
    )


def limits(found: Class) -> Iterator[Finding]:
    """Report a class that gives a volume all the room there is, whatever was requested."""
    if not found.is_enforced:
        yield warn(
            _("%(name)s does not keep volumes to their size: one volume can fill the storage of all.")
            % {"name": found.name},
            _("Use a class whose driver enforces the size, or watch how full its storage is."),
        )


# --- drivers


def drivers(api: Api, classes: Objects) -> Iterator[Finding]:
    """Report nodes whose kubelet does not know a class's CSI driver: they mount none of its volumes."""
    known = {body["metadata"]["name"] for body in list_if_served(api, "CSIDriver")}
    on_nodes = {
        body["metadata"]["name"]: {driver["name"] for driver in body.get("spec", {}).get("drivers") or []}
        for body in list_if_served(api, "CSINode")
    }
    for body in classes:
        driver = body.get("provisioner", "")
        without = [node for node, theirs in on_nodes.items() if driver not in theirs]
        if driver not in known or not without:
            continue
        facts = {"name": body["metadata"]["name"], "driver": driver, "nodes": named(without)}
        yield warn(
            _("%(nodes)s cannot mount volumes of %(name)s: its driver %(driver)s does not run there.")
            % facts,
            _(
                "Let the driver's DaemonSet run on every node of a pool: check its tolerations and node selector."
            ),
        )


def snapshots(api: Api, classes: Objects) -> Iterator[Finding]:
    if SNAPSHOTS not in api.groups():
        yield ok(_("The cluster has no volume snapshots. Berth works without them."))
        return
    by_driver = {body.get("driver", ""): body["metadata"]["name"] for body in api.list("VolumeSnapshotClass")}
    for body in classes:
        facts = {
            "name": body["metadata"]["name"],
            "snapshots": by_driver.get(body.get("provisioner", ""), ""),
        }
        if facts["snapshots"]:
            yield ok(_("Snapshots of volumes of %(name)s: class %(snapshots)s.") % facts)
        else:
            yield ok(_("There is no snapshot class for %(name)s. Berth works without one.") % facts)
