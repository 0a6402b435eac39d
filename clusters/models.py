"""Kubernetes clusters that Berth drives, and the last seen state of their nodes."""

from __future__ import annotations

import re
import uuid
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import SplitResult, urlsplit

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import IntegrityError, connection, models, transaction
from django.db.models.deletion import ProtectedError
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from accounts.text import visible
from clusters.references import valid_reference
from clusters.site import certificates, environment

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


TRIES_TO_DELETE = 5


class Installation(models.Model):
    """Identity of this installation: the label by which it knows its own objects in a shared cluster. One row."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Host key of the SSH jump. To people's ssh it is one host, however many processes it has.
    ssh_jump_key = models.TextField(
        blank=True, help_text=_("Private and encrypted; empty: not made, or a file's.")
    )
    ssh_jump_public_key = models.TextField(blank=True)

    def __str__(self) -> str:
        return str(self.id)

    @classmethod
    def current_id(cls) -> uuid.UUID:
        return cls.objects.get().id


def text_list(label: StrOrPromise, help_text: StrOrPromise = "", **options: Any) -> ArrayField[Any, Any]:
    text = models.CharField(max_length=253)
    return ArrayField(text, default=list, blank=True, verbose_name=label, help_text=help_text, **options)


class Cluster(models.Model):
    """A Kubernetes API, how to reach it, and the site's settings for what runs there."""

    class Connection(models.TextChoices):
        IN_CLUSTER = "in-cluster", _("the cluster that Berth runs in")
        KUBECONFIG = "kubeconfig", _("a kubeconfig file on the server")
        PASTED = "pasted", _("a kubeconfig stored in Berth, encrypted")

    class Exposure(models.TextChoices):
        LOAD_BALANCER = "load-balancer", _("an address of its own per workspace (LoadBalancer)")
        NODE_PORT = "node-port", _("SSH at a port of the nodes (NodePort), Jupyter through Berth")
        PORTAL = "portal", _("all through Berth (ClusterIP)")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(_("slug"), max_length=40, unique=True)
    name = models.CharField(_("name"), max_length=120, validators=[visible])
    connection = models.CharField(
        _("connection"), max_length=12, choices=Connection, default=Connection.IN_CLUSTER
    )
    kubeconfig_path = models.CharField(_("kubeconfig file"), max_length=1024, blank=True)
    context = models.CharField(
        _("context"), max_length=253, blank=True, help_text=_("Empty: the file's current one.")
    )
    # As `kubeconfigs.kept` returns it, encrypted.
    kubeconfig = models.TextField(blank=True, default="", db_default="", editable=False)
    exposure = models.CharField(
        _("exposure"), max_length=16, choices=Exposure, default=Exposure.LOAD_BALANCER
    )
    node_address = models.CharField(
        _("address of the nodes"),
        max_length=253,
        blank=True,
        help_text=_(
            "For NodePort: a name or address at which people reach the nodes’ ports. Empty: each node’s own address."
        ),
    )
    ssh_service_port = models.PositiveIntegerField(_("SSH port of a workspace's address"), default=22)
    keeps_addresses = models.BooleanField(
        _("keep addresses while stopped"),
        default=True,
        db_default=True,
        help_text=_(
            "For LoadBalancer: a stopped workspace keeps its address, which counts as used. Otherwise others may "
            "get it, and the workspace gets another one at its next start."
        ),
    )
    disk_class = models.CharField(
        _("class for local disks"),
        max_length=253,
        blank=True,
        help_text=_("StorageClass; empty: the default."),
    )
    home_class = models.CharField(
        _("class for homes"), max_length=253, blank=True, help_text=_("StorageClass; empty: the default.")
    )
    home_mib = models.PositiveIntegerField(_("size of a home (MiB)"), default=10 * 1024)
    dataset_class = models.CharField(
        _("class for datasets"),
        max_length=253,
        blank=True,
        default="",
        db_default="",
        help_text=_("StorageClass; empty: the class for homes."),
    )
    shared_classes = text_list(
        _("classes that several nodes can mount"),
        _(
            "StorageClasses whose volumes many nodes can mount at once (ReadWriteMany), besides those of drivers that "
            "Berth knows."
        ),
        db_default=[],
    )
    image_pull_secrets = text_list(_("image pull secrets"))
    # As `site.registries.sealed` returns them, encrypted.
    registries = models.TextField(
        _("sign-ons to registries"), blank=True, default="", db_default="", editable=False
    )
    http_proxy = models.CharField(
        _("proxy for http"),
        max_length=1024,
        blank=True,
        default="",
        db_default="",
        help_text=_("As in http://proxy.example.org:3128. Workspaces find it in their environment."),
    )
    https_proxy = models.CharField(
        _("proxy for https"), max_length=1024, blank=True, default="", db_default=""
    )
    pod_environment = models.TextField(
        _("environment of workspaces and jobs"),
        blank=True,
        default="",
        db_default="",
        max_length=8192,
        help_text=_(
            "One NAME=value per line, such as PIP_INDEX_URL=https://mirror.example/simple. What a person sets counts "
            "more. Everybody with a workspace can read it."
        ),
        validators=[environment.validate],
    )
    trusted_certificates = models.TextField(
        _("trusted certificates"),
        blank=True,
        default="",
        db_default="",
        max_length=certificates.LONGEST,
        help_text=_(
            "Of your own authorities, as PEM. Programs in workspaces and jobs trust them beside those of their image."
        ),
        validators=[certificates.validate],
    )
    no_proxy = models.CharField(
        _("reached without a proxy"),
        max_length=2048,
        blank=True,
        default="",
        db_default="",
        help_text=_("Names and networks, with commas between. A workspace always reaches itself without."),
    )
    pod_cidrs = text_list(
        _("pod networks"), _("Only what Berth does not find by itself, here and in the next two fields.")
    )
    service_cidrs = text_list(_("service networks"))
    api_cidrs = text_list(_("addresses of the API server"))
    denied_cidrs = text_list(_("other networks that workspaces must not reach"))
    allowed_cidrs = text_list(
        _("private networks that workspaces may reach"),
        _(
            "Such as those of a package mirror, a git server or the proxy. All other private networks are denied."
        ),
        db_default=[],
    )
    # What isolation/finding.py found, by name, as CIDRs; empty: nothing yet.
    found_networks = models.JSONField(default=dict, db_default={}, editable=False)
    networks_found_at = models.DateTimeField(_("networks found at"), null=True, editable=False)
    without_isolation = models.BooleanField(
        _("run without isolation"), default=False, db_default=False, editable=False
    )
    # Namespace whose pods may scrape what programs of workspaces and jobs serve.
    metrics_namespace = models.CharField(
        _("namespace of the Prometheus of workspaces"),
        max_length=63,
        blank=True,
        default="",
        db_default="",
        validators=[RegexValidator(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")],
        help_text=_(
            "Its pods may reach all ports of workspaces and jobs but those of JupyterLab and SSH. Empty: none may."
        ),
    )
    # A Prometheus that already has figures of GPUs (dcgm-exporter), read beside or in place of agents.
    prometheus_url = models.CharField(
        _("Prometheus"),
        max_length=1024,
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "Such as http://prometheus.monitoring:9090, to read GPU metrics. Empty: agents report them."
        ),
    )
    prometheus_token_path = models.CharField(
        _("file with its token"),
        max_length=1024,
        blank=True,
        default="",
        db_default="",
        help_text=_("If it requires one (Bearer). The file is on the server and is read each time."),
    )
    validation_image = models.CharField(
        _("image that tests GPUs"),
        max_length=512,
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "It adds two vectors with CUDA and prints “Test PASSED”, as NVIDIA's sample cuda-sample:vectoradd does."
        ),
        validators=[valid_reference],
    )
    files_image = models.CharField(
        _("image that serves files"),
        max_length=512,
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "It has Python 3.9 or newer, as images of workspaces have. With it, people open the files of volumes while "
            "nothing runs. Empty: they cannot."
        ),
        validators=[valid_reference],
    )
    files_uid = models.PositiveIntegerField(
        _("user id that serves files"),
        default=1000,
        db_default=1000,
        validators=[MinValueValidator(1)],
        help_text=_("User and group of the workspaces' images, so that files belong to them."),
    )
    # Observed state: written by the watcher, only when it changes.
    version = models.CharField(_("version"), max_length=40, blank=True, editable=False)
    unreachable_since = models.DateTimeField(_("unreachable since"), null=True, editable=False)
    unreachable_reason = models.TextField(_("unreachable reason"), blank=True, editable=False)
    # Result of the last examination that ran by itself: number of failures by check of doctor.
    doctor_at = models.DateTimeField(_("examined at"), null=True, editable=False)
    doctor_failures = models.JSONField(default=dict, db_default={}, editable=False)

    # Subjects of the RoleBinding for Secrets in each tenant's namespace (clusters/isolation/granting.py).
    secret_accounts = models.JSONField(default=list, db_default=[], editable=False)

    class Meta:
        verbose_name = _("cluster")
        verbose_name_plural = _("clusters")
        ordering: ClassVar = ["slug"]

    def __str__(self) -> str:
        return self.name

    @property
    def frees_addresses(self) -> bool:
        """Return True if a stopped workspace has no address: its Service comes back with the next start."""
        return self.exposure == self.Exposure.LOAD_BALANCER and not self.keeps_addresses

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Delete, and retry if the watch wrote rows meanwhile: it goes on until it notices the deletion."""
        pk, tries = self.pk, TRIES_TO_DELETE
        while True:
            tries -= 1
            try:
                with transaction.atomic():
                    deleted = super().delete(*args, **kwargs)
                    connection.check_constraints()
                    return deleted
            except IntegrityError as error:
                self.pk = pk
                if isinstance(error, ProtectedError) or not tries:
                    raise

    def clean(self) -> None:
        """Check what an admin entered: the kubeconfig's file, addresses and networks."""
        problems: dict[str, StrOrPromise] = {}
        if self.connection == self.Connection.KUBECONFIG and not self.kubeconfig_path:
            problems["kubeconfig_path"] = _("Name the kubeconfig file.")
        if self.node_address and not _is_host(self.node_address):
            problems["node_address"] = _("Not a host name or an address.")
        for field in ("http_proxy", "https_proxy"):
            if fault := _proxy_fault(getattr(self, field)):
                problems[field] = fault
        if fault := _prometheus_fault(self.prometheus_url):
            problems["prometheus_url"] = fault
        elif self.prometheus_token_path and not self.prometheus_url.startswith("https://"):
            problems["prometheus_token_path"] = _("A token is sent over https alone: change the address.")
        for field in ("pod_cidrs", "service_cidrs", "api_cidrs", "denied_cidrs", "allowed_cidrs"):
            wrong = [cidr for cidr in getattr(self, field) if not _is_network(cidr)]
            if wrong:
                problems[field] = _("Not a network as in 10.0.0.0/8: %(cidrs)s") % {"cidrs": ", ".join(wrong)}
        if problems:
            raise ValidationError(problems)


def _proxy_fault(address: str) -> StrOrPromise:
    """Return what is wrong with it. It must hold no password: workspaces and readers of this page see it."""
    if not address:
        return ""
    parts = _http_address(address)
    if parts is None:
        return _("Not an address as in http://proxy.example.org:3128.")
    if parts.username is not None:
        return _(
            "Leave out the name and password: every workspace could read them. Let the proxy accept the nodes."
        )
    return ""


def _prometheus_fault(address: str) -> StrOrPromise:
    if not address:
        return ""
    parts = _http_address(address)
    if parts is None or parts.query or parts.fragment:
        return _("Not an address as in http://prometheus.monitoring:9090.")
    if parts.username is not None:
        return _("Leave out the name and password: everybody who opens this page could read them.")
    return ""


def _http_address(address: str) -> SplitResult | None:
    """Return the parts of an http or https address; None if it is none."""
    try:
        parts = urlsplit(address)
        _port = parts.port
    except ValueError:
        return None
    is_one = parts.scheme in ("http", "https") and parts.hostname and not re.search(r"[^!-~]", address)
    return parts if is_one else None


def _is_host(text: str) -> bool:
    """Return True if it may stand in an ssh command: a name, or an address of either family."""
    try:
        ip_address(text)
    except ValueError:
        return re.fullmatch(r"(?!-)[A-Za-z0-9-]+(\.(?!-)[A-Za-z0-9-]+)*", text) is not None
    return True


def _is_network(cidr: str) -> bool:
    try:
        ip_network(cidr)
    except ValueError:
        return False
    return True


class Errand(models.Model):
    """Work with a cluster's API that web asks a worker for (clusters/errands/).

    Deleted when its answer was read, or an hour later.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=64)
    arguments = models.JSONField(default=dict)
    language = models.CharField(max_length=16, blank=True)
    made_at = models.DateTimeField(db_default=Now())
    began_at = models.DateTimeField(null=True)
    answer = models.JSONField(null=True)

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """Last seen state of a node. Amounts: cpu in millicores, memory and storage in bytes, others counted."""

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="nodes", verbose_name=_("cluster")
    )
    name = models.CharField(_("name"), max_length=253)
    labels = models.JSONField(default=dict)
    taints = models.JSONField(default=list)
    allocatable = models.JSONField(default=dict, help_text=_("Resource name to whole amount."))
    # Includes what does not work and so is not allocatable: a GPU that its device plugin found broken.
    capacity = models.JSONField(
        default=dict, db_default={}, help_text=_("As allocatable, of extended resources alone.")
    )
    devices = models.JSONField(
        default=list,
        db_default=[],
        help_text=_("Cards as HAMi has them: id, memory_mib, cores, slots, usable."),
    )
    ready = models.BooleanField(default=False)
    unschedulable = models.BooleanField(default=False)
    # From `nodeInfo`: kernelVersion, kubeletVersion, containerRuntimeVersion, bootID …
    system = models.JSONField(default=dict, db_default={})
    # Type to status, reason and message, without times.
    conditions = models.JSONField(default=dict, db_default={})
    # Code of why nothing new may start there, set by monitoring; empty: it may.
    out_code = models.CharField(max_length=64, blank=True, default="", db_default="")
    # The same, for pods that need a GPU.
    gpus_out_code = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        verbose_name = _("node")
        verbose_name_plural = _("nodes")
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "name"], name="one_row_per_node")]

    def __str__(self) -> str:
        return self.name


class PodUsage(models.Model):
    """Resources that a pod, ours or foreign, takes of its node. Pods that ended or have no node have no row."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="pod_usage")
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    node = models.CharField(max_length=253, db_index=True)
    run = models.UUIDField(
        null=True, db_index=True, help_text=_("The claim that this pod runs under, if ours.")
    )
    requests = models.JSONField(default=dict, help_text=_("As in Node.allocatable."))
    devices = models.JSONField(
        default=list, db_default=[], help_text=_("Cards that HAMi gave it: id, memory_mib, cores.")
    )

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_row_per_pod")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PartPod(models.Model):
    """Pod of a part of the cluster that Berth depends on (clusters/nodes/parts.py), on a node or not yet."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="part_pods")
    uid = models.CharField(max_length=64)
    part = models.CharField(max_length=64)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    node = models.CharField(max_length=253, blank=True)
    # Kind/name of what made it, as in DaemonSet/calico-node.
    owner = models.CharField(max_length=300, blank=True)
    version = models.CharField(max_length=64, blank=True, help_text=_("Tag of its image."))
    # Tag of the scheduler of Kubernetes that stands beside it in its pod, as in HAMi's.
    scheduler_version = models.CharField(max_length=64, blank=True)
    ready = models.BooleanField(default=False)
    unready_since = models.DateTimeField(null=True)
    restarts = models.PositiveIntegerField(default=0)
    crashed_at = models.DateTimeField(null=True)
    # Why it is not ready, in Kubernetes' words.
    detail = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "uid"], name="one_row_per_pod_of_a_part")
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Gpu(models.Model):
    """GPU as the agent of its node last reported it; figures that it did not report are null."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="gpus")
    node = models.CharField(max_length=253)
    uuid = models.CharField(max_length=96)
    index = models.PositiveSmallIntegerField(default=0)
    name = models.CharField(max_length=120, blank=True)
    memory_mib = models.PositiveIntegerField(null=True)
    ecc = models.BooleanField(null=True)
    compute_capability = models.CharField(max_length=8, blank=True)
    # All that the agent knows of it, and its newest sample, in the agent's schema (monitoring/agent/schema.py).
    facts = models.JSONField(default=dict)
    sample = models.JSONField(default=dict)
    utilization_percent = models.PositiveSmallIntegerField(null=True)
    memory_used_mib = models.PositiveIntegerField(null=True)
    seen_at = models.DateTimeField(null=True)
    # Containers that have it: namespace, pod, container, the device if the GPU is cut, and the uid if the pod is ours.
    held_by = models.JSONField(default=list)
    # Code of why it is handed out to nobody, set by monitoring; empty: it works.
    out_code = models.CharField(max_length=64, blank=True, default="")
    # Time at which an admin declared it working: earlier errors do not count, nor the memory errors it had by then.
    trusted_at = models.DateTimeField(null=True)
    trusted_errors = models.PositiveBigIntegerField(default=0, db_default=0)
    # Time since which it runs slower because of heat or power.
    slowed_since = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["node", "index"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "node", "uuid"], name="one_row_per_gpu")
        ]
        indexes: ClassVar = [
            models.Index(fields=["cluster", "node"], condition=~models.Q(out_code=""), name="gpus_out_of_use")
        ]

    def __str__(self) -> str:
        return f"{self.node}/{self.index}"


class UnknownCause(models.Model):
    """Message of a cluster that no rule explains: shown raw and counted until there is a rule for it."""

    digest = models.CharField(max_length=64, primary_key=True)
    source = models.CharField(_("source"), max_length=32)
    text = models.TextField(_("text"))
    count = models.PositiveIntegerField(_("count"), default=1)
    first_at = models.DateTimeField(_("first at"), auto_now_add=True)
    last_at = models.DateTimeField(_("last at"), auto_now=True)
    cluster = models.ForeignKey(
        Cluster,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        verbose_name=_("cluster"),
        help_text=_("Where it was said last, if that is known."),
    )
    dismissed_at = models.DateTimeField(_("dismissed at"), null=True)

    class Meta:
        verbose_name = _("unexplained message")
        verbose_name_plural = _("unexplained messages")
        ordering: ClassVar = ["-count"]

    def __str__(self) -> str:
        return self.text[:80]


class Watcher(models.Model):
    """Sign of life of the watch on one kind in one cluster, read by /readyz and alerts."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="watchers")
    kind = models.CharField(max_length=40)
    seen_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "kind"], name="one_watcher_per_kind")
        ]

    def __str__(self) -> str:
        return self.kind
