import uuid

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import accounts.text
import clusters.references


def make_installation(apps, schema_editor):
    """Make this installation's identity, once. It never changes."""
    apps.get_model("clusters", "Installation").objects.create()


def forget_installation(apps, schema_editor):
    apps.get_model("clusters", "Installation").objects.all().delete()


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Cluster",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("slug", models.SlugField(max_length=40, unique=True, verbose_name="slug")),
                (
                    "name",
                    models.CharField(max_length=120, validators=[accounts.text.visible], verbose_name="name"),
                ),
                (
                    "connection",
                    models.CharField(
                        choices=[
                            ("in-cluster", "the cluster that Berth runs in"),
                            ("kubeconfig", "a kubeconfig file on the server"),
                            ("pasted", "a kubeconfig stored in Berth, encrypted"),
                        ],
                        default="in-cluster",
                        max_length=12,
                        verbose_name="connection",
                    ),
                ),
                (
                    "kubeconfig_path",
                    models.CharField(blank=True, max_length=1024, verbose_name="kubeconfig file"),
                ),
                (
                    "context",
                    models.CharField(
                        blank=True,
                        help_text="Empty: the file's current one.",
                        max_length=253,
                        verbose_name="context",
                    ),
                ),
                ("kubeconfig", models.TextField(blank=True, db_default="", default="", editable=False)),
                (
                    "exposure",
                    models.CharField(
                        choices=[
                            ("load-balancer", "an address of its own per workspace (LoadBalancer)"),
                            ("node-port", "SSH at a port of the nodes (NodePort), Jupyter through Berth"),
                            ("portal", "all through Berth (ClusterIP)"),
                        ],
                        default="load-balancer",
                        max_length=16,
                        verbose_name="exposure",
                    ),
                ),
                (
                    "node_address",
                    models.CharField(
                        blank=True,
                        help_text="For NodePort: a name or address at which people reach the nodes’ ports. Empty: each node’s own address.",
                        max_length=253,
                        verbose_name="address of the nodes",
                    ),
                ),
                (
                    "ssh_service_port",
                    models.PositiveIntegerField(default=22, verbose_name="SSH port of a workspace's address"),
                ),
                (
                    "keeps_addresses",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="For LoadBalancer: a stopped workspace keeps its address, which counts as used. Otherwise others may get it, and the workspace gets another one at its next start.",
                        verbose_name="keep addresses while stopped",
                    ),
                ),
                (
                    "disk_class",
                    models.CharField(
                        blank=True,
                        help_text="StorageClass; empty: the default.",
                        max_length=253,
                        verbose_name="class for local disks",
                    ),
                ),
                (
                    "home_class",
                    models.CharField(
                        blank=True,
                        help_text="StorageClass; empty: the default.",
                        max_length=253,
                        verbose_name="class for homes",
                    ),
                ),
                ("home_mib", models.PositiveIntegerField(default=10240, verbose_name="size of a home (MiB)")),
                (
                    "dataset_class",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="StorageClass; empty: the class for homes.",
                        max_length=253,
                        verbose_name="class for datasets",
                    ),
                ),
                (
                    "shared_classes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=253),
                        blank=True,
                        db_default=[],
                        default=list,
                        help_text="StorageClasses whose volumes many nodes can mount at once (ReadWriteMany), besides those of drivers that Berth knows.",
                        size=None,
                        verbose_name="classes that several nodes can mount",
                    ),
                ),
                (
                    "image_pull_secrets",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=253),
                        blank=True,
                        default=list,
                        size=None,
                        verbose_name="image pull secrets",
                    ),
                ),
                (
                    "http_proxy",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="As in http://proxy.example.org:3128. Workspaces find it in their environment.",
                        max_length=1024,
                        verbose_name="proxy for http",
                    ),
                ),
                (
                    "https_proxy",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=1024, verbose_name="proxy for https"
                    ),
                ),
                (
                    "no_proxy",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Names and networks, with commas between. A workspace always reaches itself without.",
                        max_length=2048,
                        verbose_name="reached without a proxy",
                    ),
                ),
                (
                    "pod_cidrs",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=253),
                        blank=True,
                        default=list,
                        help_text="Only what Berth does not find by itself, here and in the next two fields.",
                        size=None,
                        verbose_name="pod networks",
                    ),
                ),
                (
                    "service_cidrs",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=253),
                        blank=True,
                        default=list,
                        size=None,
                        verbose_name="service networks",
                    ),
                ),
                (
                    "api_cidrs",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=253),
                        blank=True,
                        default=list,
                        size=None,
                        verbose_name="addresses of the API server",
                    ),
                ),
                (
                    "denied_cidrs",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=253),
                        blank=True,
                        default=list,
                        size=None,
                        verbose_name="other networks that workspaces must not reach",
                    ),
                ),
                (
                    "allowed_cidrs",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=253),
                        blank=True,
                        db_default=[],
                        default=list,
                        help_text="Such as those of a package mirror, a git server or the proxy. All other private networks are denied.",
                        size=None,
                        verbose_name="private networks that workspaces may reach",
                    ),
                ),
                ("found_networks", models.JSONField(db_default={}, default=dict, editable=False)),
                (
                    "networks_found_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="networks found at"),
                ),
                (
                    "without_isolation",
                    models.BooleanField(
                        db_default=False, default=False, editable=False, verbose_name="run without isolation"
                    ),
                ),
                (
                    "metrics_namespace",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Its pods may reach all ports of workspaces and jobs but those of JupyterLab and SSH. Empty: none may.",
                        max_length=63,
                        validators=[
                            django.core.validators.RegexValidator("^[a-z0-9]([-a-z0-9]*[a-z0-9])?\\Z")
                        ],
                        verbose_name="namespace of the Prometheus of workspaces",
                    ),
                ),
                (
                    "prometheus_url",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Such as http://prometheus.monitoring:9090, to read GPU metrics. Empty: agents report them.",
                        max_length=1024,
                        verbose_name="Prometheus",
                    ),
                ),
                (
                    "prometheus_token_path",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="If it requires one (Bearer). The file is on the server and is read each time.",
                        max_length=1024,
                        verbose_name="file with its token",
                    ),
                ),
                (
                    "validation_image",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="It adds two vectors with CUDA and prints “Test PASSED”, as NVIDIA's sample cuda-sample:vectoradd does.",
                        max_length=512,
                        validators=[clusters.references.valid_reference],
                        verbose_name="image that tests GPUs",
                    ),
                ),
                (
                    "files_image",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="It has Python 3.9 or newer, as images of workspaces have. With it, people open the files of volumes while nothing runs. Empty: they cannot.",
                        max_length=512,
                        validators=[clusters.references.valid_reference],
                        verbose_name="image that serves files",
                    ),
                ),
                (
                    "files_uid",
                    models.PositiveIntegerField(
                        db_default=1000,
                        default=1000,
                        help_text="User and group of the workspaces' images, so that files belong to them.",
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="user id that serves files",
                    ),
                ),
                (
                    "version",
                    models.CharField(blank=True, editable=False, max_length=40, verbose_name="version"),
                ),
                (
                    "unreachable_since",
                    models.DateTimeField(editable=False, null=True, verbose_name="unreachable since"),
                ),
                (
                    "unreachable_reason",
                    models.TextField(blank=True, editable=False, verbose_name="unreachable reason"),
                ),
                ("doctor_at", models.DateTimeField(editable=False, null=True, verbose_name="examined at")),
                ("doctor_failures", models.JSONField(db_default={}, default=dict, editable=False)),
                ("secret_accounts", models.JSONField(db_default=[], default=list, editable=False)),
            ],
            options={
                "verbose_name": "cluster",
                "verbose_name_plural": "clusters",
                "ordering": ["slug"],
            },
        ),
        migrations.CreateModel(
            name="Errand",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=64)),
                ("arguments", models.JSONField(default=dict)),
                ("language", models.CharField(blank=True, max_length=16)),
                ("made_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("began_at", models.DateTimeField(null=True)),
                ("answer", models.JSONField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Installation",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "ssh_jump_key",
                    models.TextField(
                        blank=True, help_text="Private and encrypted; empty: not made, or a file's."
                    ),
                ),
                ("ssh_jump_public_key", models.TextField(blank=True)),
            ],
        ),
        migrations.CreateModel(
            name="UnknownCause",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("source", models.CharField(max_length=32, verbose_name="source")),
                ("text", models.TextField(verbose_name="text")),
                ("count", models.PositiveIntegerField(default=1, verbose_name="count")),
                ("first_at", models.DateTimeField(auto_now_add=True, verbose_name="first at")),
                ("last_at", models.DateTimeField(auto_now=True, verbose_name="last at")),
                ("dismissed_at", models.DateTimeField(null=True, verbose_name="dismissed at")),
                (
                    "cluster",
                    models.ForeignKey(
                        help_text="Where it was said last, if that is known.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="clusters.cluster",
                        verbose_name="cluster",
                    ),
                ),
            ],
            options={
                "verbose_name": "unexplained message",
                "verbose_name_plural": "unexplained messages",
                "ordering": ["-count"],
            },
        ),
        migrations.CreateModel(
            name="Gpu",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("node", models.CharField(max_length=253)),
                ("uuid", models.CharField(max_length=96)),
                ("index", models.PositiveSmallIntegerField(default=0)),
                ("name", models.CharField(blank=True, max_length=120)),
                ("memory_mib", models.PositiveIntegerField(null=True)),
                ("ecc", models.BooleanField(null=True)),
                ("compute_capability", models.CharField(blank=True, max_length=8)),
                ("facts", models.JSONField(default=dict)),
                ("sample", models.JSONField(default=dict)),
                ("utilization_percent", models.PositiveSmallIntegerField(null=True)),
                ("memory_used_mib", models.PositiveIntegerField(null=True)),
                ("seen_at", models.DateTimeField(null=True)),
                ("held_by", models.JSONField(default=list)),
                ("out_code", models.CharField(blank=True, default="", max_length=64)),
                ("trusted_at", models.DateTimeField(null=True)),
                ("trusted_errors", models.PositiveBigIntegerField(db_default=0, default=0)),
                ("slowed_since", models.DateTimeField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="gpus",
                        to="clusters.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ["node", "index"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("out_code", ""), _negated=True),
                        fields=["cluster", "node"],
                        name="gpus_out_of_use",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("cluster", "node", "uuid"), name="one_row_per_gpu")
                ],
            },
        ),
        migrations.CreateModel(
            name="Node",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=253, verbose_name="name")),
                ("labels", models.JSONField(default=dict)),
                ("taints", models.JSONField(default=list)),
                ("allocatable", models.JSONField(default=dict, help_text="Resource name to whole amount.")),
                (
                    "capacity",
                    models.JSONField(
                        db_default={}, default=dict, help_text="As allocatable, of extended resources alone."
                    ),
                ),
                (
                    "devices",
                    models.JSONField(
                        db_default=[],
                        default=list,
                        help_text="Cards as HAMi has them: id, memory_mib, cores, slots, usable.",
                    ),
                ),
                ("ready", models.BooleanField(default=False)),
                ("unschedulable", models.BooleanField(default=False)),
                ("system", models.JSONField(db_default={}, default=dict)),
                ("conditions", models.JSONField(db_default={}, default=dict)),
                ("out_code", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("gpus_out_code", models.CharField(blank=True, db_default="", default="", max_length=64)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="nodes",
                        to="clusters.cluster",
                        verbose_name="cluster",
                    ),
                ),
            ],
            options={
                "verbose_name": "node",
                "verbose_name_plural": "nodes",
                "ordering": ["name"],
                "constraints": [models.UniqueConstraint(fields=("cluster", "name"), name="one_row_per_node")],
            },
        ),
        migrations.CreateModel(
            name="PartPod",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uid", models.CharField(max_length=64)),
                ("part", models.CharField(max_length=64)),
                ("namespace", models.CharField(max_length=253)),
                ("name", models.CharField(max_length=253)),
                ("node", models.CharField(blank=True, max_length=253)),
                ("owner", models.CharField(blank=True, max_length=300)),
                ("version", models.CharField(blank=True, help_text="Tag of its image.", max_length=64)),
                ("scheduler_version", models.CharField(blank=True, max_length=64)),
                ("ready", models.BooleanField(default=False)),
                ("unready_since", models.DateTimeField(null=True)),
                ("restarts", models.PositiveIntegerField(default=0)),
                ("crashed_at", models.DateTimeField(null=True)),
                ("detail", models.TextField(blank=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="part_pods",
                        to="clusters.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("cluster", "uid"), name="one_row_per_pod_of_a_part")
                ],
            },
        ),
        migrations.CreateModel(
            name="PodUsage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uid", models.CharField(max_length=64)),
                ("namespace", models.CharField(max_length=253)),
                ("name", models.CharField(max_length=253)),
                ("node", models.CharField(db_index=True, max_length=253)),
                (
                    "run",
                    models.UUIDField(
                        db_index=True, help_text="The claim that this pod runs under, if ours.", null=True
                    ),
                ),
                ("requests", models.JSONField(default=dict, help_text="As in Node.allocatable.")),
                (
                    "devices",
                    models.JSONField(
                        db_default=[],
                        default=list,
                        help_text="Cards that HAMi gave it: id, memory_mib, cores.",
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pod_usage",
                        to="clusters.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("cluster", "uid"), name="one_row_per_pod")],
            },
        ),
        migrations.CreateModel(
            name="Watcher",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=40)),
                ("seen_at", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="watchers",
                        to="clusters.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("cluster", "kind"), name="one_watcher_per_kind")
                ],
            },
        ),
        migrations.RunPython(make_installation, forget_installation),
        # Each report rewrites every row of GPUs. With room beside it on its page, no index is touched for that.
        migrations.RunSQL(
            "ALTER TABLE clusters_gpu SET (fillfactor = 50)",
            "ALTER TABLE clusters_gpu RESET (fillfactor)",
        ),
    ]
