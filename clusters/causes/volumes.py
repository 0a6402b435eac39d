"""Why a volume is not made, not attached or not mounted: events of claims and of the kubelet."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from clusters.causes.cause import Cause

CAUSES = (
    Cause(
        "volume_attached_elsewhere",
        r"Multi-Attach error|already (exclusively )?attached to (another|one) node|used by pod\(s\)|volume is in use",
        _("Its volume is still attached to another node."),
        _("It goes on when the other node has let go of it, which can take minutes after a node was lost."),
        "admin",
    ),
    Cause(
        "volume_damaged",
        # Of an address (host:/export) it is the node that lacks a program: volume_driver_missing.
        r"can't read superblock|bad superblock(?! on [^\s/]+:/)|superblock could not be read|structure needs cleaning"
        r"|fsck.*(error|failed)",
        _("The file system of its volume cannot be read."),
        _("Do not delete or remake it: an admin has to look at the storage first. Nothing was formatted."),
        "admin",
    ),
    Cause(
        "storage_unwell",
        r"\bno mds\b|\blaggy\b|not ready for workloads|HEALTH_ERR|\bvolume\b.*\bis (faulted|degraded)"
        # A "Mon" with a day behind it is none of Ceph's monitors.
        r"|\b(osds?|mdss?|mons?(?! \w{3} +\d|, \d))\b[^\n]*\b(down|flapping|slow|unreachable)\b",
        _("The storage itself is not well at the moment."),
        _(
            "It is tried again by itself, and your files are kept. An admin has to look at the storage's own services."
        ),
        "admin",
    ),
    Cause(
        "volume_read_only",
        r"read-only file ?system|mounted read-only|write[- ]protected",
        _("Its volume can only be read at the moment."),
        _("An admin has to look at the storage. Your files are still there."),
        "admin",
    ),
    Cause(
        "volume_disk_full",
        r"no space left on device|disk quota exceeded|not enough (free |lv )?(space|storage)|ResourceExhausted",
        _("There is no room left on the storage for its volume."),
        _("An admin has to add storage. Deleting files that are not needed may help, too."),
        "admin",
    ),
    Cause(
        "volume_class_missing",
        r'storageclass\S* "(?P<storage_class>[^"]*)" not found',
        _("The storage class that the volume needs does not exist in this cluster (%(storage_class)s)."),
        _("An admin has to name an existing class in the cluster's settings, or to set a default class."),
        "admin",
    ),
    Cause(
        "volume_class_not_set",
        r"for this claim and no storage class is set",
        _("No storage class is named for its volume, and the cluster has no default one."),
        _("An admin has to name an existing class in the cluster's settings, or to set a default class."),
        "admin",
    ),
    Cause(
        "volume_key_missing",
        r"references non-existent (secret|config) key:? ?(?P<key>\S*)",
        _("A file that it mounts is missing a part (%(key)s)."),
        _("Berth writes it anew when you start again."),
    ),
    Cause(
        "volume_source_missing",
        r'(?P<kind>secret|configmap|persistentvolume(claim)?)s? "(?P<name>[^"]*)" (not found|is being deleted)',
        _("It cannot be mounted: the %(kind)s %(name)s does not exist."),
        _("Stop it and start it again. Tell an admin if that does not help."),
        "admin",
    ),
    Cause(
        "driver_missing_on_node",
        r"hostPath type check failed: (?P<path>\S+) is not a directory",
        _("The node has no folder %(path)s, from which the pool takes the GPU driver."),
        _(
            "An admin has to put the driver there, or to correct the driver's path of the pool. "
            "Starting again may pick another node."
        ),
        "admin",
    ),
    Cause(
        "volume_access_denied",
        r"mount.*permission denied|access denied by server|mount failed.*\b(13|EACCES)\b",
        _("The storage does not let the node mount the volume."),
        _("An admin has to check the storage's credentials and exports."),
        "admin",
    ),
    Cause(
        "volume_driver_missing",
        r"driver name \S+ not found in the list of registered CSI drivers"
        r"|CSINode \S+ does not contain driver|failed to get Plugin|no volume plugin matched"
        r"|unknown filesystem type"
        r"|for several filesystems \(e\.g\. nfs|bad superblock on [^\s/]+:/",
        _("The node has no working driver for this kind of volume."),
        _(
            "An admin has to install or restart the storage driver there. Starting again may pick another node."
        ),
        "admin",
    ),
    Cause(
        "volume_provisioner_silent",
        r"Waiting for a volume to be created,? either by (the )?external provisioner ['\"](?P<provisioner>[^'\"]*)",
        _("Storage is being made by %(provisioner)s."),
        _("This usually takes seconds. If it lasts, tell an admin: the provisioner may be down."),
        "admin",
    ),
    Cause(
        "volume_waits_for_container",
        r"waiting for first consumer|waiting for pod \S+ to be scheduled",
        _("Storage is made as soon as a node is chosen."),
        _("Nothing to do: this is how local disks work."),
    ),
    Cause(
        "volume_not_provisioned",
        r"failed to provision volume|ProvisioningFailed",
        _("The storage could not make the volume."),
        _("It is tried again by itself. Tell an admin if it lasts."),
        "admin",
    ),
    Cause(
        "volume_none_available",
        r"no persistent volumes available for this claim",
        _("The cluster has no volume of this kind left to hand out."),
        _("An admin has to add volumes, or choose a storage class that makes them by itself."),
        "admin",
    ),
    Cause(
        "volume_not_grown",
        r"VolumeResizeFailed|error expanding volume|resize volume .*failed|FileSystemResizeFailed",
        _("The volume could not be made larger yet."),
        _("It is tried again by itself. Tell an admin if it lasts."),
        "admin",
    ),
    Cause(
        "volume_mount_timeout",
        r"(?<!cache: )timed out waiting for the condition|timeout expired waiting for volumes|context deadline exceeded"
        r"|operation with the given Volume ID \S+ already exists|connection timed out"
        r"|timed out waiting for external-attacher|Attach timeout for volume",
        _("The volume takes unusually long to be mounted."),
        _("It is tried again by itself. If it lasts, tell an admin: the storage may be slow or down."),
        "admin",
    ),
    Cause(
        "volume_mount_failed",
        r"FailedMount|FailedAttachVolume|MountVolume\.\w+ failed|AttachVolume\.\w+ failed"
        r"|Unable to (attach or )?mount volumes|mount failed: exit status|rbd: (map|sysfs write) failed",
        _("A volume could not be mounted."),
        _("It is tried again by itself. Tell an admin if it lasts."),
        "admin",
    ),
)
