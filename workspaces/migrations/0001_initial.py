import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import accounts.models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("quotas", "0001_initial"),
        ("sessions", "0001_initial"),
        ("workloads", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
                ("env", models.JSONField(blank=True, default=dict)),
                ("repository", models.CharField(blank=True, max_length=1024)),
                ("priority", models.SmallIntegerField(default=0)),
                (
                    "max_runtime_minutes",
                    models.PositiveIntegerField(help_text="Empty: it runs until stopped.", null=True),
                ),
                ("metrics_port", models.PositiveIntegerField(null=True)),
                ("metrics_path", models.CharField(blank=True, db_default="", default="", max_length=200)),
                (
                    "notify",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="Notify its owner when it is ready, fails or stops.",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                ("deleted_at", models.DateTimeField(null=True, verbose_name="deleted at")),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "last_event",
                    models.PositiveIntegerField(default=0, help_text="Number of the newest event."),
                ),
                ("dirty_since", models.DateTimeField(db_index=True, null=True, verbose_name="dirty since")),
                ("dirty_marks", models.PositiveIntegerField(default=0)),
                (
                    "disk_mib",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="A local disk beside the home; 0: none.",
                        verbose_name="local disk (MiB)",
                    ),
                ),
                ("next_size", models.JSONField(null=True)),
                ("next_settings", models.JSONField(db_default={}, default=dict)),
                ("previous_image", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("former_size", models.JSONField(null=True)),
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
                    models.BooleanField(
                        default=False, help_text="A deletion takes what was made for it along."
                    ),
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
                            ("deleted", "deleted"),
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
                ("trouble_since", models.DateTimeField(null=True)),
                ("gives_up_at", models.DateTimeField(null=True)),
                ("conditions", models.JSONField(db_default=[], default=list)),
                ("node", models.CharField(blank=True, max_length=253, verbose_name="node")),
                ("host", models.CharField(blank=True, max_length=253)),
                ("jupyter_host", models.CharField(blank=True, db_default="", default="", max_length=253)),
                ("jupyter_port", models.PositiveIntegerField(null=True)),
                ("ssh_port", models.PositiveIntegerField(null=True)),
                ("apps", models.JSONField(db_default=[], default=list)),
                ("pod_uid", models.CharField(blank=True, max_length=64, verbose_name="pod uid")),
                ("pod_ended", models.BooleanField(default=True)),
                ("container_restarts", models.PositiveIntegerField(default=0, help_text="Within that pod.")),
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
                ("idle_minutes", models.PositiveIntegerField(null=True)),
                ("idle_since", models.DateTimeField(null=True)),
                ("idle_busy_by", models.JSONField(db_default=[], default=list)),
                ("idle_stops_at", models.DateTimeField(null=True)),
                ("idle_warned_at", models.DateTimeField(null=True)),
                ("kept_alive_at", models.DateTimeField(null=True)),
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
                        to="workloads.image",
                        verbose_name="image",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="%(class)ss",
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
                        related_name="%(class)ss",
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
            name="Share",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("role", models.CharField(choices=[("look", "look"), ("work", "work")], max_length=4)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "given_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="shares",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "verbose_name": "share",
                "verbose_name_plural": "shares",
                "ordering": ["created_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("is_on", models.BooleanField(default=True, verbose_name="on")),
                ("start", models.TimeField(verbose_name="start")),
                ("stop", models.TimeField(verbose_name="stop")),
                ("days", models.JSONField(help_text="1: Monday, 7: Sunday.", verbose_name="days")),
                (
                    "time_zone",
                    models.CharField(
                        max_length=64, validators=[accounts.models.valid_time_zone], verbose_name="time zone"
                    ),
                ),
                ("done_until", models.DateTimeField()),
                ("due_at", models.DateTimeField(db_index=True, null=True, verbose_name="looked at next")),
                ("stops_at", models.DateTimeField(null=True)),
                ("waits_until", models.DateTimeField(null=True)),
                ("by_hand_at", models.DateTimeField(null=True)),
                ("changed_at", models.DateTimeField(auto_now=True, verbose_name="changed")),
                (
                    "workspace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="schedule",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
            },
        ),
        migrations.CreateModel(
            name="GatewayPass",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("port", models.PositiveIntegerField(null=True)),
                ("is_ticket", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="sessions.session"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
                ("replaced", models.PositiveIntegerField(db_default=0, default=0)),
                ("gateway_replaced", models.PositiveIntegerField(db_default=0, default=0)),
                ("handed_to", models.JSONField(db_default=[], default=list)),
                (
                    "host_key",
                    models.TextField(help_text="OpenSSH private key (ed25519), stable over all runs."),
                ),
                ("host_key_public", models.TextField(help_text="The public half, in clear.")),
                ("host_key_fingerprint", models.CharField(max_length=64)),
                ("env", models.TextField(help_text="JSON object of secret_env.")),
                ("next_env", models.TextField(blank=True, db_default="", default="")),
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
        migrations.CreateModel(
            name="HostKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("host", models.CharField(max_length=63)),
                ("host_key", models.TextField()),
                ("host_key_public", models.TextField()),
                ("host_key_fingerprint", models.CharField(max_length=64)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "host"), name="one_host_key_per_person_and_name")
                ],
            },
        ),
        migrations.CreateModel(
            name="Template",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=63, verbose_name="name")),
                ("body", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="templates",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "template",
                "verbose_name_plural": "templates",
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "name"), name="one_template_of_a_name")
                ],
            },
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
            model_name="share",
            constraint=models.UniqueConstraint(
                fields=("workspace", "user"), name="one_share_per_person_and_workspace"
            ),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.UniqueConstraint(
                fields=("workspace", "number"), name="events_numbered_once_per_workspace"
            ),
        ),
    ]
