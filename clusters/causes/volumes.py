"""Reasons why a volume is not made, attached or mounted: events of PVCs and the kubelet, words of the scheduler."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from clusters.causes.cause import Cause
from clusters.causes.gpus import DRIVER_NOT_LOADED

# --- causes that the scheduler reports, too

MISSING = Cause(
    "volume_missing",
    r'(?:persistentvolume(?:claim)?s? "(?=[^"]*" (?:not found|is being deleted|bound to non-existent))'
    r"|bound to non-existent pv|lost (?:its|reference to) PersistentVolume"
    r'|NewMounter initialization failed for volume "(?=.* does not exist)'
    r"|\bno such (?:volume|subvolume|rbd image):? *|InvalidVolume\.NotFound\W*"
    r"|\bvolume (?:ID )?(?=\S+ (?:was )?not found)"
    r"|rbd: error opening image |(?:subvolume|volume|disk|image) '?(?=\S+ (?:does not|doesn't) exist)"
    r'|hostPath type check failed: )(?P<volume>[^"\s]*)',
    _("Its volume %(volume)s no longer exists, or is being deleted."),
    _(
        "If you did not delete it, tell an admin at once: the data may still be there. Berth overwrites nothing."
    ),
    "admin",
    ngettext_lazy("%(nodes)s node misses the volume", "%(nodes)s nodes miss the volume", "nodes"),
)

CLASS_MISSING = Cause(
    "class_missing",
    r'(?P<missing>storageclass\S* "[^"]*"(?= not found)|no storage class is set'
    r'|PriorityClass with name \S+(?= was found)|RuntimeClass "[^"]*"|RuntimeClass \S+(?= not found)'
    r"|device class \S+(?= does not exist)|(?<=no runtime for )\"?(?!nvidia)[\w-]+(?=\W* is configured)"
    r"|(?<=runtime handler )(?!nvidia)[\w-]+|(?<=RuntimeHandler )\\*\"?(?!nvidia)[\w-]+(?=\W* not supported)"
    r"|(?<=volumesnapshotclass)\S* \S+(?= not found))",
    _("A class that it needs does not exist in the cluster: %(missing)s."),
    _("An admin has to create it, or to correct the settings of the cluster or of the pool that name it."),
    "admin",
    ngettext_lazy(
        "%(nodes)s node misses the storage class", "%(nodes)s nodes miss the storage class", "nodes"
    ),
)

UNBOUND = Cause(
    "volume_unbound",
    r"unbound immediate PersistentVolumeClaims|PersistentVolumeClaim is not bound"
    r"|Waiting for a volume to be created|waiting for first consumer|waiting for pod \S+ to be scheduled"
    r"|clone from snapshot is already in progress",
    _("Its storage is being created. A local disk is created once a node is chosen."),
    _("This usually takes seconds. If this continues, tell an admin: the storage provisioner may be down."),
    "admin",
    ngettext_lazy("%(nodes)s node waits for storage", "%(nodes)s nodes wait for storage", "nodes"),
)

ON_OTHER_NODE = Cause(
    "volume_on_other_node",
    r"volume node affinity conflict|match PersistentVolume's node affinity|NoVolumeZoneConflict"
    r"|no available volume zone",
    _("Its disk is on a node without room, and cannot be used from other nodes."),
    _("It starts when the node of its disk has room. To move now, launch a new workspace without this disk."),
    in_short=ngettext_lazy(
        "%(nodes)s node cannot reach its disk", "%(nodes)s nodes cannot reach its disk", "nodes"
    ),
)

DISK_FULL = Cause(
    "volume_disk_full",
    r"no space left on device|(?:disk |storage |EDQUOT.*)quota exceeded|quota[- ]?exceeded"
    r"|\bexceeds? [^\n]{0,40}\bquota"
    r"|\b(?:not|no) (?:have )?enough [^\n]{0,30}(?:space|storage|capacity)|\bResourceExhausted\b"
    r"|volume \S+ not scheduled"
    r"|\binsufficient (?:free |available |disk )?(?:space|storage|capacity)|\bout of (?:disk )?space\b"
    r"|exceeds allowed gigabytes|Volume\w*(?:Limit|Quota)Exceeded|VolumeSizeExceedsAvailableQuota"
    r"|\b(?:cluster|pool|OSDs?|disk|file ?system)\b[^\n]{0,30}\b(?:is|are) (?:near)?full\b|\b(?:OSD|POOL)_(?:NEAR"
    r"|BACKFILL)?FULL"
    r"|no persistent volumes available for this claim(?! and no storage class)"
    r"|find available persistent volumes to bind",
    _("The storage is full, or has no volume of this kind."),
    _("Delete files that you do not need. If that does not help, an admin has to add storage."),
    "admin",
    ngettext_lazy(
        "%(nodes)s node has no volume to hand out", "%(nodes)s nodes have no volume to hand out", "nodes"
    ),
)

HELD_ELSEWHERE = Cause(
    "volume_attached_elsewhere",
    r"Multi-Attach error|already (?:exclusively )?attached\b|used by pod\(s\)|\battached to (?:a"
    r"|an)(?:other)? (?:\w+ )?"
    r"(?:node|instance|server|VM)\b|ReadWriteOncePod|\bvol-\w+ is not 'available'|already (?:being )?(?:used|owned"
    r"|locked) by"
    r"|no available disk|\b(?:volume|image|disk|resource)\b[^\n]{0,80}\b(?:is|are) (?:\w+ )?(?:in use|being used"
    r"|locked)\b"
    r"|\bVolumeInUse\b|still (?:mounted|attached)|volume attachment is being deleted|(?:being|been|be) detached"
    r"|detach it first|used by a pod can ?not be (?:expanded|resized)"
    r"|status must be [^\n]{0,20}available|exclusive lock|failed to (?:acquire|get|take) (?:the )?lock\b"
    # The node does not release it.
    r"|Unmount(?:Volume|Device)\S* failed|\bumount: |target is busy|device or resource busy|DetachVolume\S* failed"
    r"|error cleaning subPath|mounted by other references|volume paths are still present",
    _("Its volume is still attached to another container or node."),
    _(
        "It continues once the other container releases the volume. After a node failure this "
        "can take several minutes. If it stays this way, an admin has to make sure that the "
        "other node is off."
    ),
    "admin",
    ngettext_lazy("%(nodes)s node sees the volume held", "%(nodes)s nodes see the volume held", "nodes"),
)

SETTINGS_MISSING = Cause(
    "settings_missing",
    r"(?:(?:secret|configmap)s? \"(?=[^\"]*\" (?:not found|is being deleted))"
    r"|couldn't find key |references non-existent (?:secret|config) key:? ?)(?P<name>(?:[^\s\"]*[^\s\".])?)",
    _("A part of its settings is missing in the cluster: %(name)s."),
    _("Start it again: Berth writes its settings again. If that does not help, tell an admin."),
    "admin",
)

MOUNT_FAILED = Cause(
    "volume_failed",
    r"FailedMount|FailedAttachVolume|FailedMapVolume|\bM(?:ount|ap)Volume\.\w+ failed|failed to prepare subPath"
    r"|is not a (?:valid )?mount ?point|\b(?:attach|mount)\w* failed\b|cannot find volume \"[^\"]*\" to mount"
    r"|\b(?:failed|could not|unable) (?:to )?(?:attach|detach|mount|map|stage|publish) (?:the )?(?:disk|volume"
    r"|device)"
    r"|AttachVolume\.\w+ failed"
    r"|Unable to (?:attach or )?mount volumes|mount failed: exit status|rbd: (?:map|sysfs write) failed"
    r'|\bmounting \\*"/(?!proc\b|sys\b|dev\b)[^"]*" to rootfs',
    _("The storage could not create, expand, attach or mount a volume."),
    _(
        "Berth retries automatically. If this continues, start it again, or tell an admin: the message of the "
        "cluster shows where it failed."
    ),
    "admin",
)

# Also as people retell it: "can't not read super block".
_NO_SUPERBLOCK = r"can(?:not|'t| not|'t not) read super ?block"

UNWELL = Cause(
    "storage_unwell",
    r"\bno mds\b|\blaggy\b|not ready for workloads|HEALTH_ERR|\bvolume\b.*\bis (?:faulted|degraded)"
    r"|\bMDS_SLOW|\bSLOW_OPS\b|\bOSD_DOWN\b|Waiting for volume share|engine image \S+ is not deployed"
    # "Mon" before a date is a weekday, not one of Ceph's monitors.
    r"|\b(?:osds?\d*|mdss?|mons?(?! \w{3} +\d|, \d))\b[^\n]*\b(?:down|flapping|slow|unreachable)\b"
    r"|(?<!cache: )timed out waiting for the condition|timeout expired waiting for volumes"
    r"|context deadline exceeded|operation with the given Volume ID \S+ already exists|connection timed out"
    r"|timed out waiting for external-attacher|not attached according to node status|Attach timeout for volume"
    r"|\bReplicas yet to connect|Host is down"
    r"|\b(?:attach|mount|map|stag|publish|provision)\w*\b[^\n]{0,200}(?<!cache: )\b(?:timed out|timeout)\b"
    r"|monitor info"
    r"|nfs: server \S+ not responding|\bslow request [\d.]+ seconds old|\d+ slow (?:requests|ops)\b|\bslow mds\b"
    r"|\blibceph: [^\n]*(?:socket (?:closed|error)|connect error|session lost|\bdown\b)"
    r"|\btask [\w/.-]{0,40}(?:rbd|nfs|ceph)[\w/.-]{0,40}:\d+ blocked for more than|mount error (?:5|110) ="
    r"|failed to dial all known|couldn't connect to the cluster"
    r"|\bmount[^\n]*(?:connection refused|no route to host|network is unreachable|failed to resolve server)"
    r"|(?:volume|rbd|ceph|nfs|iscsi|\bsd[a-z]\d*|nvme\w+)\b[^\n]{0,200}\bI/O error",
    _("The storage is failing or unusually slow at the moment."),
    _(
        "Berth retries automatically, and your files are kept. If this continues, an admin has to check "
        "the storage's own services; a node that lost them may need a restart."
    ),
    "admin",
)

# Printed only for a lost share, in whatever text. With an address (host:/export) there is no disk to be damaged.
STALE = replace(
    UNWELL,
    pattern=r"stale (?:NFS )?file handle|Transport endpoint is not connected"
    # Docker sees no folder there, and cannot make it either.
    r"|creating mount source path [^\n]*: file exists"
    rf"|:/[\w./-]*: {_NO_SUPERBLOCK}",
)

DAMAGED = Cause(
    "volume_damaged",
    # Not with an address (host:/export): there the node lacks a program (volume_not_mountable).
    rf"{_NO_SUPERBLOCK}|bad superblock(?! on [^\s/]+:/)|superblock could not be read"
    r"|structure needs cleaning|fsck.*(?:error|failed)|resize2fs: Permission denied"
    r"|\bfile ?system (?:issue|error|corruption)s?\b[^\n]{0,40}\b(?:detected|found)"
    r"|read-only file ?system(?!: '/(?:usr|opt|etc|var|root)/)|mounted read-only|write[- ]protected"
    r"|EXT4-fs (?:error|\([^)]*\): (?:Remounting filesystem read-only|I/O error))"
    r"|(?:XFS|BTRFS)\b[^\n]*(?:corrupt|shutting down|forced readonly)",
    _("The file system of its volume cannot be read, or cannot be written."),
    _(
        "Do not delete or recreate the volume: an admin has to check the storage first. Berth itself never formats "
        "one."
    ),
    "admin",
)

# A node's words before and after it formats a disk on which it found no file system.
FORMATTING = Cause(
    "volume_formatting",
    r"appears to be unformatted|attempting to format|\b(?:mkfs\.\w+|mke2fs)\b"
    r"|\bformat of disk (?![^\n]*executable file not found)",
    _("A node found no file system on its volume and formats it, or tries to."),
    _(
        "If the volume is new, nothing is lost. If it had data, stop every run that mounts it and tell an admin at "
        "once: no node may mount it to write before the storage is checked."
    ),
    "admin",
)

# Only with a path: a terminal has such errors, too.
UNREADABLE = replace(DAMAGED, pattern=r"Input/output error: '/|'/[^'\n]*': Input/output error")
# Of a program that reads or writes files.
UNREACHED = replace(
    UNWELL, pattern=r"\[Errno 5\] Input/output|\b(?:read|write|fsync)\b[^\n]{0,40}Input/output error"
)

# Words that mean this where the text is about a volume.
ANY_FAULT = replace(
    UNWELL,
    pattern=r"(?<!cache: )time(?:d )?out|deadline exceeded|unreachable|not respond|connection (?:reset|lost|closed"
    r"|aborted"
    r"|refused)"
    r"|(?:failed|unable|could not|couldn't|cannot) to? ?connect|no route to host|\bUnavailable\b|unhealthy|degraded"
    r"|\bfault(?:ed|y)?\b"
    r"|\bI/O error|input/output error|internal server error|service unavailable|\b50[0-4]\b|not (?:yet )?ready"
    r"|\bEOF\b"
    r"|ServerFaultCode|\bfailed to (?:retrieve|query|list|look ?up)\b|broken pipe|\bAborted\b|no such host"
    r"|dial (?:tcp|unix)",
    of_its_source=True,
)

CANNOT_RESIZE = Cause(
    "volume_cannot_resize",
    r"can not be less than (?:status\.capacity|previous value)"
    r"|only dynamically provisioned pvc can be resized|does not (?:support|allow) (?:volume )?(?:resiz|expan)\w+"
    r"|\bshrink"
    r"|plugin capable of expanding|(?:resiz|expan)\w+ (?:of \S+ )?(?:is )?not (?:supported|allowed)"
    r"|except resources\.requests .*for bound claims|requested volume size \d+ is less than",
    _("Its volume cannot have that size."),
    _(
        "A volume never shrinks. It grows if its kind supports that and it was used once: start it first, and ask an "
        "admin about its storage class if that does not help."
    ),
)

NOT_MOUNTABLE = Cause(
    "volume_not_mountable",
    r"(?:mount|rados|rbd|ceph|nfs|cifs|smb|lustre)\b.*permission denied|access denied by server"
    r"|mount failed.*\b(?:13|EACCES)\b"
    r"|driver name \S+ not found in the list of registered CSI drivers"
    r"|CSINode \S+ does not contain driver|has no NodeID annotation|failed to get Plugin|no volume plugin matched"
    r"|unknown filesystem type|for several filesystems \(e\.g\. nfs|bad superblock on [^\s/]+:/|wrong fs type"
    r"|\bfuse (?:failed to start|device not found)|fusermount|/dev/fuse"
    r"|reason given by server|mount error[( ](?:2|12|13|22|95)\b|(?:protocol|transport)\b[^\n]* not supported"
    r"|rpc\.statd is not running|rbd image status with: \(exit status (?:1|2|13|22|95)\)"
    r"|:/\S* on \S+ failed: No such process"
    r"|incorrect mount option|iscsiadm|running modprobe args|is host /dev mounted"
    r"|Module \S+ not found in directory|csi\.sock"
    r"|apparently in use by the system|already mounted or mount point busy",
    _(
        "The node cannot mount this kind of volume: a driver is missing there, or the storage refuses the node."
    ),
    _(
        "An admin has to check the storage driver on that node, and the credentials and exports of the "
        "storage. Starting again may pick another node."
    ),
    "admin",
    ngettext_lazy("%(nodes)s node lacks its driver", "%(nodes)s nodes lack its driver", "nodes"),
)

REFUSED = replace(
    NOT_MOUNTABLE,
    pattern=r"permission denied|access denied|unauthori[sz]ed|\bforbidden\b|authenticat\w+ (?:error|fail)"
    r"|invalid credential"
    r"|(?:operation|protocol|option|filesystem|file system) [^\n]{0,30}not (?:permitted|supported)"
    r"|(?:executable file|command|program|module|driver|plugin)[^\n]{0,60}not (?:found|installed|registered|loaded)"
    r"|No such (?:file or directory|device)|does not exist|invalid argument|bad option",
    of_its_source=True,
)

CAUSES = (
    DRIVER_NOT_LOADED,  # a pool may mount the driver from a folder of its nodes
    MISSING,
    FORMATTING,
    STALE,
    HELD_ELSEWHERE,
    DAMAGED,
    DISK_FULL,
    CLASS_MISSING,
    SETTINGS_MISSING,
    NOT_MOUNTABLE,
    UNBOUND,
    CANNOT_RESIZE,
    UNWELL,
    REFUSED,
    ANY_FAULT,
    replace(
        MOUNT_FAILED,
        pattern=r"failed to provision volume|ProvisioningFailed|create process timeout|connecting failed: rados"
        r"|VolumeResizeFailed|error expanding volume|resize volume .*failed|FileSystemResizeFailed"
        r"|failed while expanding volume|error when resizing filesystem",
    ),
    MOUNT_FAILED,
)
