"""Volumes: what their owner wants, and what was last seen of each in its cluster."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q, Value
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext_lazy as _

from accounts.models import Tenant
from accounts.text import visible
from clusters.models import Cluster

SMALLEST_MIB = 64
LARGEST_MIB = 2**31 - 1
NEARLY_FULL_PERCENT, FULL_PERCENT = 85, 95


class Kind(models.TextChoices):
    HOME = "home", _("home")
    DISK = "disk", _("local disk")
    DATASET = "dataset", _("dataset")
    SCRATCH = "scratch", _("scratch")


class Phase(models.TextChoices):
    PENDING = "pending", _("being created")
    READY = "ready", _("ready")
    GROWING = "growing", _("growing")
    IN_BIN = "in_bin", _("in the bin")
    DELETING = "deleting", _("being deleted")
    FAILED = "failed", _("failed")
    DELETED = "deleted", _("deleted")


class Shared(models.TextChoices):
    NO = "no", _("nobody else")
    READ = "read", _("its tenant, to read")
    WRITE = "write", _("its tenant, to read and write")


class Access(models.TextChoices):
    """Number of nodes and pods that may mount it at once, as its PVC says."""

    MANY = "rwx", _("several nodes at once")
    NODE = "rwo", _("one node at a time")
    POD = "rwop", _("one run at a time")
    READ = "rox", _("several nodes at once, to read")


class Adoption(models.TextChoices):
    """Adoption of a volume that somebody else had made. Empty: it is Berth's own, or confirmed long ago."""

    ASKED = "asked", _("being looked at")
    READ_ONLY = "read_only", _("read-only until its owner confirms")
    CONFIRMED = "confirmed", _("confirmed by its owner")


# Volumes that are adopted, and whose files nobody has looked at yet.
NOT_LOOKED_AT = ~Q(adoption="") & Q(inspection__isnull=True)
# A driver that is no CSI driver: it makes no snapshots.
NO_DRIVER = "-"


class Volume(models.Model):
    """Storage of one person in one tenant and cluster. Its PVC carries its id; the data outlives the PVC."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="volumes", verbose_name=_("tenant")
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="volumes", verbose_name=_("owner")
    )
    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="+", verbose_name=_("cluster")
    )
    name = models.CharField(_("name"), max_length=63, validators=[visible])
    kind = models.CharField(_("kind"), max_length=8, choices=Kind)
    # The owner's home in this tenant and cluster: what their new workspaces mount.
    is_main = models.BooleanField(_("mounted by new workspaces"), default=False, db_default=False)
    # The workspace or job that it was made for, and may be deleted with; null: none.
    made_for = models.UUIDField(null=True, db_index=True)
    # Name of its PVC, if an earlier version of Berth gave it another than `object_name` does.
    claim_name = models.CharField(max_length=253, blank=True, default="", db_default="")
    # The copy whose files it begins with; null: it begins empty.
    source = models.ForeignKey("Snapshot", on_delete=models.PROTECT, null=True, related_name="copies")
    # It is that published version itself: runs mount it to read, and people see it with its dataset.
    is_version = models.BooleanField(default=False, db_default=False)
    shared = models.CharField(_("shared with"), max_length=8, choices=Shared, default=Shared.NO)
    requested_mib = models.PositiveIntegerField(_("requested size (MiB)"))
    # Nobody writes to a volume that is being adopted: it may be in use, or not be what an admin took it for.
    adoption = models.CharField(_("adoption"), max_length=9, blank=True, default="", db_default="")
    # What an inspection found in it: file system, size_mib, used_mib, names, more; or problem and data. Null: none yet.
    inspection = models.JSONField(_("inspection"), null=True)
    # When it leaves the bin for good; empty: it is not in the bin.
    bin_until = models.DateTimeField(_("deleted for good at"), null=True)

    # What was last seen. A size of 0: nothing was made for it yet.
    phase = models.CharField(_("phase"), max_length=8, choices=Phase, default=Phase.PENDING)
    problem = models.CharField(max_length=64, blank=True)
    problem_data = models.JSONField(default=dict)
    size_mib = models.PositiveIntegerField(_("size (MiB)"), default=0)
    storage_class = models.CharField(_("storage class"), max_length=253, blank=True)
    access = models.CharField(_("access"), max_length=4, choices=Access, blank=True)
    is_enforced = models.BooleanField(_("size is enforced"), default=True)
    can_grow = models.BooleanField(_("can grow"), default=True)
    # The cluster's volume behind the PVC, once bound; and the nodes that can mount it (empty: any).
    bound_to = models.CharField(_("persistent volume"), max_length=253, blank=True)
    affinity = models.JSONField(default=dict)
    # Its CSI driver, or NO_DRIVER; empty before it is bound.
    driver = models.CharField(max_length=253, blank=True, default="", db_default="")
    # Names of the nodes that have it attached, as the cluster says.
    attached_to = models.JSONField(default=list, db_default=Value([], models.JSONField()))
    # What the kubelet of a node that mounts it measured last; the percentage of which its owner was warned.
    used_mib = models.PositiveBigIntegerField(_("used (MiB)"), null=True)
    # Size of its file system: less than that of the volume.
    used_of_mib = models.PositiveBigIntegerField(null=True)
    used_at = models.DateTimeField(_("used space measured at"), null=True)
    used_warned = models.PositiveSmallIntegerField(default=0, db_default=0)

    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(_("deleted at"), null=True)
    # Set by a request for a look, cleared by the look that saw the last one.
    dirty_since = models.DateTimeField(null=True)
    dirty_marks = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name = _("volume")
        verbose_name_plural = _("volumes")
        ordering: ClassVar = ["-created_at", "id"]
        indexes: ClassVar = [
            models.Index(fields=["-created_at", "-id"], name="volume_newest"),
            models.Index(fields=["cluster"], condition=Q(dirty_since__isnull=False), name="volume_marked"),
            models.Index(fields=["bin_until"], condition=Q(bin_until__isnull=False), name="volume_in_bin"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "owner", "name"],
                condition=Q(deleted_at__isnull=True, bin_until__isnull=True, is_version=False),
                name="one_volume_of_a_name_per_person_and_tenant",
            ),
            models.UniqueConstraint(
                fields=["tenant", "owner", "cluster"],
                condition=Q(is_main=True, deleted_at__isnull=True, bin_until__isnull=True),
                name="one_main_home_per_person_tenant_and_cluster",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_read_only(self) -> bool:
        """True while nobody may write to it, its owner neither."""
        return bool(self.adoption)

    @property
    def is_inspected(self) -> bool:
        """True if its files may be mounted: it is no foreign volume whose files were not looked at yet."""
        return not self.adoption or (self.inspection is not None and not self.inspection.get("problem"))

    @property
    def is_exclusive(self) -> bool:
        """True if runs on several nodes cannot mount it at once. Of a scratch each run has its own."""
        return self.kind != Kind.SCRATCH and self.access not in (Access.MANY, Access.READ)

    @property
    def object_name(self) -> str:
        """Name of its PVC."""
        return self.claim_name or f"vol-{self.id}"

    @property
    def rights(self) -> Volume:
        """The volume that says who may mount it: a version's is its dataset."""
        return self.source.volume if self.is_version and self.source else self

    @property
    def is_due(self) -> bool:
        """True once its time in the bin is over: it is deleted, and cannot be restored."""
        return self.bin_until is not None and self.bin_until <= timezone.now()

    @property
    def fullness(self) -> str:
        """Code of the problem that its use is; empty: none, or its use is not known."""
        percent = self.used_percent
        if percent is None or percent < NEARLY_FULL_PERCENT or self.bin_until is not None:
            return ""
        return "full" if percent >= FULL_PERCENT else "nearly_full"

    @property
    def used_percent(self) -> int | None:
        if self.used_mib is None or not self.used_of_mib:
            return None
        return 100 * self.used_mib // self.used_of_mib

    @property
    def node(self) -> str:
        """The one node that can mount it; empty if there are several, or it is not known yet."""
        terms = self.affinity.get("nodeSelectorTerms") or []
        found = {
            value
            for term in terms
            for rule in (*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ()))
            if rule.get("key") in NODE_KEYS and rule.get("operator") == "In"
            for value in rule.get("values") or ()
        }
        return found.pop() if len(found) == 1 else ""


class Snapshot(models.Model):
    """Copy of a volume as it was at one moment; a published version if it has a number.

    Its VolumeSnapshot carries its id; the copy outlives a VolumeSnapshot that is deleted by hand.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    volume = models.ForeignKey(
        Volume, on_delete=models.PROTECT, related_name="snapshots", verbose_name=_("volume")
    )
    number = models.PositiveIntegerField(_("version"), null=True)
    note = models.CharField(_("note"), max_length=200, blank=True, validators=[visible])
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", verbose_name=_("by")
    )
    # Made for one new volume alone, and deleted once that has its files.
    is_passing = models.BooleanField(default=False)

    phase = models.CharField(_("phase"), max_length=8, choices=Phase, default=Phase.PENDING)
    problem = models.CharField(max_length=64, blank=True)
    problem_data = models.JSONField(default=dict)
    size_mib = models.PositiveIntegerField(_("size (MiB)"), default=0)
    # Its VolumeSnapshotContent, and the driver's own name of the copy, once known.
    content = models.CharField(max_length=253, blank=True)
    handle = models.CharField(max_length=1024, blank=True)

    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    deleted_at = models.DateTimeField(_("deleted at"), null=True)

    class Meta:
        verbose_name = _("snapshot")
        verbose_name_plural = _("snapshots")
        ordering: ClassVar = ["-created_at", "id"]
        indexes: ClassVar = [
            models.Index(
                fields=["volume"], condition=Q(phase__in=("pending", "deleting")), name="snapshot_moving"
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["volume", "number"], name="one_version_of_a_number_per_volume"),
        ]

    def __str__(self) -> str:
        when = self.number or date_format(timezone.localtime(self.created_at), "DATETIME_FORMAT")
        return f"{self.volume.name} {when}"

    @property
    def object_name(self) -> str:
        """Name of its VolumeSnapshot."""
        return f"snap-{self.id}"


class StorageSpan(models.Model):
    """Entry of the ledger of storage: time for which a volume had one size, owner and tenant.

    The database writes it, in each transaction that changes a volume (migration 0007): no path around it, whatever
    changes the row. The size is the promised one, which the limits count.
    """

    # No foreign key: the ledger outlives what it is about.
    volume = models.UUIDField()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", verbose_name=_("tenant"))
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", verbose_name=_("owner")
    )
    mib = models.PositiveBigIntegerField(_("size (MiB)"))
    since = models.DateTimeField(_("since"))
    until = models.DateTimeField(_("until"), null=True)

    class Meta:
        verbose_name = _("entry of the ledger of storage")
        verbose_name_plural = _("ledger of storage")
        ordering: ClassVar = ["-since", "-id"]
        indexes: ClassVar = [models.Index(fields=["tenant", "until", "since"], name="span_of_tenant")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["volume"], condition=Q(until__isnull=True), name="one_open_span_per_volume"
            ),
            models.CheckConstraint(
                condition=Q(until__isnull=True) | Q(until__gte=F("since")), name="span_ends_after_its_start"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.volume} · {self.since:%Y-%m-%d %H:%M}"


# Path of a mount that stands for the home directory of the run's image; and where a workspace's own disk is mounted.
HOME_PATH, DISK_PATH = "~", "/disk"
LATEST = "latest"


class Turn(models.TextChoices):
    """What the holder's next start does to a mount that was changed during a run."""

    COMING = "coming"
    GOING = "going"


class Mounts(models.QuerySet["Mount"]):
    def in_force(self) -> Mounts:
        """Mounts that the present run has; they change only between runs."""
        return self.exclude(turn=Turn.COMING)


class Mount(models.Model):
    """Volume that each run of a holder (a workspace, a job) mounts at a path."""

    volume = models.ForeignKey(Volume, on_delete=models.PROTECT, related_name="mounts")
    holder = models.UUIDField(db_index=True)
    path = models.CharField(max_length=240)
    read_only = models.BooleanField()
    # As it was asked for: a version's number, or LATEST; empty: the volume itself.
    version = models.CharField(max_length=10, blank=True, default="", db_default="")
    # Empty: the next start leaves it as it is.
    turn = models.CharField(max_length=6, choices=Turn, blank=True, default="", db_default="")

    objects = Mounts.as_manager()

    class Meta:
        ordering: ClassVar = ["holder", "path"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["holder", column], condition=~Q(turn=turn), name=f"one_mount_per_{column}_{when}"
            )
            for column in ("volume", "path")
            for turn, when in ((Turn.COMING, "now"), (Turn.GOING, "next"))
        ]


class FilesPhase(models.TextChoices):
    STARTING = "starting", _("starting")
    READY = "ready", _("ready")
    ENDING = "ending", _("ending")
    ENDED = "ended", _("ended")


class FilesSession(models.Model):
    """Pod without a GPU that serves the files of a volume to Berth. It holds the volume as a run does, until the end of
    its pod is proven."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    volume = models.ForeignKey(Volume, on_delete=models.PROTECT, related_name="files_sessions")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    writes = models.BooleanField()
    # It looks what is in an adopted volume, and ends.
    inspects = models.BooleanField(default=False, db_default=False)
    # Encrypted: what its pod asks of who comes.
    token = models.TextField()
    phase = models.CharField(max_length=8, choices=FilesPhase, default=FilesPhase.STARTING)
    problem = models.CharField(max_length=64, blank=True)
    problem_data = models.JSONField(default=dict)
    # Where Berth reaches it, once it is ready.
    host = models.CharField(max_length=253, blank=True)
    used_at = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-created_at", "id"]
        indexes: ClassVar = [
            models.Index(fields=["by"], condition=Q(ended_at__isnull=True), name="files_session_open"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["volume"], condition=Q(ended_at__isnull=True), name="one_files_session_per_volume"
            ),
        ]

    @property
    def object_name(self) -> str:
        """Name of its pod, Secret and Service."""
        return f"files-{self.id}"


# Labels by which drivers of local disks name a node.
NODE_KEYS = ("kubernetes.io/hostname", "metadata.name", "topology.topolvm.io/node", "openebs.io/nodename")


class Connection(models.Model):
    """Bucket of an S3-compatible store that a person named, with its keys, which are never shown again."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="connections", verbose_name=_("tenant"))
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="connections", verbose_name=_("owner")
    )
    name = models.CharField(_("name"), max_length=40)
    endpoint = models.URLField(_("endpoint"), max_length=253)
    bucket = models.CharField(_("bucket"), max_length=63)
    keys = models.TextField(help_text=_("Access key and secret key as JSON, encrypted."))
    created_at = models.DateTimeField(_("created"), default=timezone.now)

    class Meta:
        ordering: ClassVar = ["name", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "owner", "name"], name="one_connection_of_a_name")
        ]
        verbose_name = _("connection")
        verbose_name_plural = _("connections")

    def __str__(self) -> str:
        return self.name


class ConnectionUse(models.Model):
    """A connection whose keys the runs of a holder get; the first in order also under the names that tools expect."""

    connection = models.ForeignKey(Connection, models.CASCADE, related_name="uses")
    holder = models.UUIDField(db_index=True)

    class Meta:
        ordering: ClassVar = ["pk"]
