import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("quotas", "0001_initial"),
        ("sessions", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Image",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("slug", models.SlugField(max_length=40, unique=True, verbose_name="slug")),
                ("name", models.CharField(max_length=120, verbose_name="name")),
                ("description", models.CharField(blank=True, max_length=240, verbose_name="description")),
                ("reference", models.CharField(max_length=512, verbose_name="container reference")),
                ("offers_jupyter", models.BooleanField(default=True, verbose_name="offers Jupyter")),
                ("offers_ssh", models.BooleanField(default=True, verbose_name="offers SSH")),
                ("uid", models.PositiveIntegerField(default=1000, verbose_name="user id")),
                ("gid", models.PositiveIntegerField(default=1000, verbose_name="group id")),
                ("username", models.CharField(default="jovyan", max_length=32, verbose_name="user name")),
                ("home", models.CharField(default="/home/jovyan", max_length=240, verbose_name="home")),
                ("shell", models.CharField(default="/bin/bash", max_length=240, verbose_name="shell")),
                ("is_active", models.BooleanField(default=True, verbose_name="offered")),
            ],
            options={
                "verbose_name": "image",
                "verbose_name_plural": "images",
                "ordering": ["slug"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("uid__gte", 1), ("gid__gte", 1)), name="image_never_runs_as_root"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Workspace",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=63, verbose_name="name")),
                ("units", models.PositiveIntegerField(default=0, verbose_name="units")),
                ("cards", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("card_memory_mib", models.PositiveIntegerField(null=True)),
                ("card_cores", models.PositiveSmallIntegerField(null=True)),
                ("cpu_millicores", models.PositiveIntegerField(verbose_name="CPU (millicores)")),
                ("memory_mib", models.PositiveIntegerField(verbose_name="memory (MiB)")),
                (
                    "disk_mib",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="A local disk beside the home; 0: none.",
                        verbose_name="local disk (MiB)",
                    ),
                ),
                ("env", models.JSONField(blank=True, default=dict)),
                ("repository", models.CharField(blank=True, max_length=1024)),
                ("priority", models.SmallIntegerField(default=0)),
                (
                    "max_runtime_minutes",
                    models.PositiveIntegerField(help_text="Empty: it runs until stopped.", null=True),
                ),
                (
                    "notify",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="Notify its owner when it is ready, fails or stops.",
                    ),
                ),
                ("next_size", models.JSONField(null=True)),
                (
                    "desired",
                    models.CharField(
                        choices=[("running", "running"), ("stopped", "stopped"), ("deleted", "deleted")],
                        default="running",
                        max_length=8,
                        verbose_name="desired",
                    ),
                ),
                (
                    "delete_disk",
                    models.BooleanField(default=False, help_text="A deletion takes home and disk along."),
                ),
                (
                    "ending",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("stop", "stop"),
                            ("restart", "restart"),
                            ("interrupted", "interrupted"),
                            ("requeue", "sent back to the queue"),
                            ("reclaim", "asked to return its GPUs"),
                            ("failed", "failed"),
                            ("delete", "delete"),
                        ],
                        max_length=12,
                    ),
                ),
                ("run", models.UUIDField(null=True, verbose_name="run")),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("starting", "starting"),
                            ("ready", "ready"),
                            ("stopping", "stopping"),
                            ("stopped", "stopped"),
                            ("failed", "failed"),
                            ("deleting", "deleting"),
                        ],
                        default="waiting",
                        max_length=8,
                        verbose_name="phase",
                    ),
                ),
                ("message_code", models.CharField(blank=True, max_length=64)),
                ("message_data", models.JSONField(default=dict)),
                (
                    "step",
                    models.CharField(
                        choices=[
                            ("request", "Request"),
                            ("admission", "Admission"),
                            ("disk", "Disk"),
                            ("container", "Container"),
                            ("scheduled", "Scheduled"),
                            ("image", "Image"),
                            ("mounts", "Mounts"),
                            ("started", "Started"),
                            ("endpoint", "Endpoint"),
                            ("ready", "Ready"),
                        ],
                        default="request",
                        help_text="Under way, or the last.",
                        max_length=10,
                        verbose_name="step",
                    ),
                ),
                ("step_since", models.DateTimeField(verbose_name="step since")),
                ("failure", models.JSONField(null=True)),
                ("troubles", models.JSONField(default=dict)),
                ("conditions", models.JSONField(db_default=[], default=list)),
                ("node", models.CharField(blank=True, max_length=253, verbose_name="node")),
                ("host", models.CharField(blank=True, max_length=253)),
                ("jupyter_port", models.PositiveIntegerField(null=True)),
                ("ssh_port", models.PositiveIntegerField(null=True)),
                ("pod_uid", models.CharField(blank=True, max_length=64, verbose_name="pod uid")),
                ("pod_ended", models.BooleanField(default=True)),
                ("container_restarts", models.PositiveIntegerField(default=0, help_text="Within that pod.")),
                ("volumes", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                (
                    "started_at",
                    models.DateTimeField(
                        help_text="When the current run was admitted.", null=True, verbose_name="started at"
                    ),
                ),
                ("ready_at", models.DateTimeField(null=True, verbose_name="ready at")),
                (
                    "stops_at",
                    models.DateTimeField(help_text="When the lifetime of the current run ends.", null=True),
                ),
                ("lifetime_due_at", models.DateTimeField(db_index=True, null=True)),
                ("deleted_at", models.DateTimeField(null=True, verbose_name="deleted at")),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "last_event",
                    models.PositiveIntegerField(default=0, help_text="Number of the newest event."),
                ),
                ("dirty_since", models.DateTimeField(db_index=True, null=True, verbose_name="dirty since")),
                ("dirty_marks", models.PositiveIntegerField(default=0)),
                ("warned", models.BooleanField(db_default=False, default=False)),
                (
                    "flavor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="quotas.flavor",
                        verbose_name="flavor",
                    ),
                ),
                (
                    "image",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="workspaces.image",
                        verbose_name="image",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="workspaces",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="quotas.pool",
                        verbose_name="pool",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="workspaces",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "workspace",
                "verbose_name_plural": "workspaces",
                "ordering": ["-created_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="GatewayPass",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("is_ticket", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="sessions.session"
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workspaces.workspace",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("run", models.UUIDField(null=True)),
                ("at", models.DateTimeField()),
                (
                    "step",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("request", "Request"),
                            ("admission", "Admission"),
                            ("disk", "Disk"),
                            ("container", "Container"),
                            ("scheduled", "Scheduled"),
                            ("image", "Image"),
                            ("mounts", "Mounts"),
                            ("started", "Started"),
                            ("endpoint", "Endpoint"),
                            ("ready", "Ready"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "level",
                    models.CharField(
                        choices=[("info", "info"), ("warning", "warning"), ("error", "error")],
                        default="info",
                        max_length=8,
                    ),
                ),
                ("code", models.CharField(max_length=64)),
                ("data", models.JSONField(default=dict)),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "ordering": ["workspace", "number"],
            },
        ),
        migrations.CreateModel(
            name="WorkspaceSecret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("jupyter_token", models.TextField()),
                (
                    "host_key",
                    models.TextField(help_text="OpenSSH private key (ed25519), stable over all runs."),
                ),
                ("host_key_public", models.TextField(help_text="The public half, in clear.")),
                ("host_key_fingerprint", models.CharField(max_length=64)),
                ("env", models.TextField(help_text="JSON object of secret_env.")),
                (
                    "workspace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="secret",
                        to="workspaces.workspace",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="workspace",
            index=models.Index(fields=["tenant", "phase"], name="workspace_tenant_phase"),
        ),
        migrations.AddIndex(
            model_name="workspace",
            index=models.Index(fields=["-created_at", "-id"], name="workspace_newest"),
        ),
        migrations.AddConstraint(
            model_name="workspace",
            constraint=models.UniqueConstraint(
                condition=models.Q(("deleted_at__isnull", True)),
                fields=("tenant", "owner", "name"),
                name="one_workspace_of_a_name_per_person_and_tenant",
            ),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.UniqueConstraint(
                fields=("workspace", "number"), name="events_numbered_once_per_workspace"
            ),
        ),
    ]
