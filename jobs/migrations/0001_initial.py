import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("quotas", "0001_initial"),
        ("storage", "0001_initial"),
        ("workloads", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Job",
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
                    "command",
                    models.JSONField(
                        default=list, help_text="Program and arguments; empty: its script runs."
                    ),
                ),
                ("completions", models.PositiveIntegerField(default=1, verbose_name="completions")),
                ("parallelism", models.PositiveIntegerField(default=1, verbose_name="parallelism")),
                (
                    "retries",
                    models.PositiveSmallIntegerField(
                        default=3, help_text="Failures of a part that do not end it.", verbose_name="retries"
                    ),
                ),
                ("final_exit_codes", models.JSONField(default=list)),
                ("sweep", models.JSONField(null=True)),
                (
                    "ttl_hours",
                    models.PositiveIntegerField(help_text="Deleted so long after its end.", null=True),
                ),
                (
                    "framework",
                    models.CharField(
                        blank=True,
                        choices=[("torchrun", "torchrun"), ("ranks", "ranks")],
                        db_default="",
                        default="",
                        max_length=8,
                    ),
                ),
                (
                    "nodes",
                    models.PositiveSmallIntegerField(
                        db_default=1, default=1, help_text="Pods of an attempt, all of which it needs."
                    ),
                ),
                ("processes_per_node", models.PositiveSmallIntegerField(db_default=1, default=1)),
                ("checkpoints", models.UUIDField(null=True)),
                ("is_held", models.BooleanField(db_default=False, default=False)),
                (
                    "desired",
                    models.CharField(
                        choices=[("done", "done"), ("cancelled", "cancelled"), ("deleted", "deleted")],
                        default="done",
                        max_length=9,
                        verbose_name="desired",
                    ),
                ),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("starting", "starting"),
                            ("running", "running"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("cancelling", "cancelling"),
                            ("cancelled", "cancelled"),
                        ],
                        default="waiting",
                        max_length=10,
                        verbose_name="phase",
                    ),
                ),
                ("message_code", models.CharField(blank=True, max_length=64)),
                ("message_data", models.JSONField(default=dict)),
                ("failure", models.JSONField(null=True)),
                ("troubles", models.JSONField(default=dict)),
                ("started_at", models.DateTimeField(null=True, verbose_name="started at")),
                ("ended_at", models.DateTimeField(null=True, verbose_name="ended at")),
                ("expires_at", models.DateTimeField(help_text="When it is deleted.", null=True)),
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
                (
                    "version",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="storage.snapshot",
                    ),
                ),
                (
                    "writes",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="storage.volume",
                    ),
                ),
            ],
            options={
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
                "ordering": ["-created_at", "id"],
            },
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
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="events", to="jobs.job"
                    ),
                ),
            ],
            options={
                "ordering": ["job", "number"],
            },
        ),
        migrations.CreateModel(
            name="Dependency",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "on",
                    models.CharField(
                        choices=[("success", "success"), ("end", "end")], default="success", max_length=7
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="after", to="jobs.job"
                    ),
                ),
                (
                    "predecessor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="followed_by", to="jobs.job"
                    ),
                ),
            ],
            options={
                "ordering": ["job", "pk"],
            },
        ),
        migrations.CreateModel(
            name="JobSecret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("env", models.TextField(help_text="JSON object of secret_env.")),
                ("script", models.TextField(blank=True)),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="secret", to="jobs.job"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Part",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("index", models.PositiveIntegerField()),
                ("parameters", models.JSONField(default=dict)),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("waiting", "waiting"),
                            ("starting", "starting"),
                            ("running", "running"),
                            ("ending", "ending"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        default="pending",
                        max_length=9,
                    ),
                ),
                (
                    "ending",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("cancel", "cancelled"),
                            ("reclaim", "asked to return its GPUs"),
                            ("again", "ended from outside"),
                            ("requeue", "sent back to the queue"),
                            ("failed", "failed"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "failures",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="Attempts that count against retries."
                    ),
                ),
                ("run", models.UUIDField(null=True)),
                ("number", models.PositiveIntegerField(default=0)),
                ("metrics", models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                ("progress", models.FloatField(null=True)),
                ("pace", models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="parts", to="jobs.job"
                    ),
                ),
            ],
            options={
                "ordering": ["job", "index"],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("run", models.UUIDField(unique=True)),
                ("node", models.CharField(blank=True, max_length=253)),
                ("members", models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                ("exit_code", models.IntegerField(null=True)),
                ("reason", models.CharField(blank=True, max_length=64)),
                ("data", models.JSONField(default=dict)),
                ("trouble_since", models.DateTimeField(null=True)),
                (
                    "conditions",
                    models.JSONField(db_default=models.Value([], models.JSONField()), default=list),
                ),
                ("counted", models.BooleanField(default=False)),
                ("gpus", models.JSONField(db_default=models.Value([], models.JSONField()), default=list)),
                ("gpu_use_percent", models.FloatField(null=True)),
                ("tail", models.TextField(blank=True, db_default="", default="")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "part",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="attempts", to="jobs.part"
                    ),
                ),
            ],
            options={
                "ordering": ["part", "number"],
            },
        ),
        migrations.CreateModel(
            name="Series",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("points", models.JSONField(default=list)),
                ("newest", models.JSONField(default=list)),
                ("stride", models.PositiveIntegerField(default=1)),
                ("seen", models.PositiveBigIntegerField(default=0)),
                (
                    "part",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="series", to="jobs.part"
                    ),
                ),
            ],
            options={
                "ordering": ["part", "name"],
            },
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["tenant", "phase"], name="job_tenant_phase"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["-created_at", "-id"], name="job_newest"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", True), ("expires_at__isnull", False)),
                fields=["expires_at"],
                name="job_expires",
            ),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.UniqueConstraint(fields=("job", "number"), name="events_numbered_once_per_job"),
        ),
        migrations.AddConstraint(
            model_name="dependency",
            constraint=models.UniqueConstraint(
                fields=("job", "predecessor"), name="one_dependency_per_pair_of_jobs"
            ),
        ),
        migrations.AddConstraint(
            model_name="dependency",
            constraint=models.CheckConstraint(
                condition=models.Q(("job", models.F("predecessor")), _negated=True),
                name="no_job_waits_for_itself",
            ),
        ),
        migrations.AddConstraint(
            model_name="part",
            constraint=models.UniqueConstraint(fields=("job", "index"), name="one_part_per_index_of_a_job"),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(
                fields=("part", "number"), name="attempts_numbered_once_per_part"
            ),
        ),
        migrations.AddConstraint(
            model_name="series",
            constraint=models.UniqueConstraint(fields=("part", "name"), name="one_series_of_a_name_per_part"),
        ),
    ]
