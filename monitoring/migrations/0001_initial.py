import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import monitoring.models.idle

# One partition per step of age: each is vacuumed alone, and samples come and go in the smallest.
FIGURES = """
    CREATE TABLE monitoring_figure (
        track_id integer NOT NULL,
        at integer NOT NULL,
        memory_mib integer,
        use_thousandths integer,
        step_seconds smallint NOT NULL,
        samples smallint NOT NULL,
        power_watts smallint,
        temperature_celsius smallint,
        PRIMARY KEY (track_id, at, step_seconds)
    ) PARTITION BY LIST (step_seconds);
    CREATE INDEX figures_by_age ON monitoring_figure (at);
    CREATE TABLE monitoring_figure_samples PARTITION OF monitoring_figure FOR VALUES IN (0)
        WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 1);
    CREATE TABLE monitoring_figure_minutes PARTITION OF monitoring_figure FOR VALUES IN (60);
    CREATE TABLE monitoring_figure_ten_minutes PARTITION OF monitoring_figure FOR VALUES IN (600);
    CREATE TABLE monitoring_figure_hours PARTITION OF monitoring_figure FOR VALUES IN (3600);
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("clusters", "0001_initial"),
        ("jobs", "0001_initial"),
        ("quotas", "0001_initial"),
        ("workspaces", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AlertPass",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("raise_queued_at", models.DateTimeField(null=True)),
                ("raised_at", models.DateTimeField(null=True)),
                ("send_queued_at", models.DateTimeField(null=True)),
                ("site_ends_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="IdleLook",
            fields=[
                ("run", models.UUIDField(primary_key=True, serialize=False)),
                ("figures_since", models.DateTimeField(null=True)),
                ("asked_at", models.DateTimeField(null=True)),
                ("answered_at", models.DateTimeField(null=True)),
                ("answer", models.JSONField(null=True)),
                ("quiet_since", models.DateTimeField(null=True)),
                ("kept_at", models.DateTimeField(help_text="Its newest keep-alive from inside.", null=True)),
            ],
        ),
        migrations.CreateModel(
            name="IdlePolicy",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Off: nothing is stopped by it, also not by a wider policy.",
                        verbose_name="stops",
                    ),
                ),
                (
                    "minutes",
                    models.PositiveIntegerField(
                        default=120,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(43200),
                        ],
                        verbose_name="idle minutes",
                    ),
                ),
                (
                    "warning_minutes",
                    models.PositiveIntegerField(
                        default=10,
                        help_text="Its owner is notified so long before.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(43200),
                        ],
                        verbose_name="warning (minutes)",
                    ),
                ),
                (
                    "gpu_percent",
                    models.FloatField(
                        default=5,
                        help_text="More than that in any minute counts as busy.",
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(100),
                        ],
                        verbose_name="GPU use (%)",
                    ),
                ),
                (
                    "cpu_cores",
                    models.FloatField(
                        default=0.25,
                        help_text="More than that in any minute counts as busy.",
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1024),
                        ],
                        verbose_name="CPU use (cores)",
                    ),
                ),
                (
                    "night_minutes",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Empty: as by day.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(43200),
                        ],
                        verbose_name="idle minutes at night",
                    ),
                ),
                ("night_from", models.TimeField(blank=True, null=True, verbose_name="night from")),
                ("night_until", models.TimeField(blank=True, null=True, verbose_name="night until")),
                (
                    "time_zone",
                    models.CharField(
                        default=monitoring.models.idle.own_zone,
                        max_length=64,
                        validators=[monitoring.models.idle.valid_zone],
                        verbose_name="time zone",
                    ),
                ),
                (
                    "waiting_minutes",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="For GPUs of the same pool. Empty: no difference.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(43200),
                        ],
                        verbose_name="idle minutes while others wait",
                    ),
                ),
            ],
            options={
                "verbose_name": "idle policy",
                "verbose_name_plural": "idle policies",
                "ordering": ["tenant__slug", "pool__slug", "id"],
            },
        ),
        migrations.CreateModel(
            name="IsolationProof",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("image", models.CharField(max_length=512)),
                (
                    "uid",
                    models.PositiveIntegerField(default=1000, help_text="The user that the image runs as."),
                ),
                ("asked_at", models.DateTimeField(auto_now_add=True)),
                ("queued_at", models.DateTimeField(null=True)),
                ("before", models.JSONField(default=dict)),
                ("policed_at", models.DateTimeField(null=True)),
                ("tried_before", models.PositiveIntegerField(default=0)),
                ("after", models.JSONField(default=dict)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "under way"),
                            ("apart", "kept apart"),
                            ("reached", "not kept apart"),
                            ("unclear", "nothing proven"),
                        ],
                        max_length=8,
                    ),
                ),
                ("code", models.CharField(blank=True, max_length=64)),
                ("data", models.JSONField(default=dict)),
                ("cleared_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["-asked_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="Look",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="clusters.cluster",
                    ),
                ),
                ("wanted_at", models.DateTimeField(help_text="Somebody asked for one.", null=True)),
                ("queued_at", models.DateTimeField(help_text="One is on its way.", null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("seconds", models.FloatField(default=0)),
                ("objects_seen", models.PositiveIntegerField(default=0)),
                ("error", models.TextField(blank=True, help_text="Why the last one came to no end.")),
            ],
        ),
        migrations.CreateModel(
            name="NodeLoad",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("node", models.CharField(blank=True, max_length=253)),
                ("figures", models.JSONField(default=dict)),
                ("at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="OomKill",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("node", models.CharField(max_length=253)),
                ("pod_uid", models.CharField(max_length=64)),
                ("container", models.CharField(blank=True, max_length=64)),
                ("kills", models.PositiveIntegerField()),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="PostMortem",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                (
                    "holder_kind",
                    models.CharField(
                        choices=[("workspace", "workspace"), ("job", "job")],
                        max_length=12,
                        verbose_name="kind",
                    ),
                ),
                ("holder_id", models.UUIDField()),
                ("name", models.CharField(max_length=63, verbose_name="name")),
                ("part", models.PositiveIntegerField(default=0)),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("image", models.CharField(blank=True, max_length=40, verbose_name="image")),
                ("pool", models.CharField(blank=True, max_length=63, verbose_name="pool")),
                ("node", models.CharField(blank=True, max_length=253, verbose_name="node")),
                (
                    "happened",
                    models.CharField(
                        choices=[
                            ("failed", "failed"),
                            ("evicted", "evicted"),
                            ("interrupted", "interrupted"),
                            ("restarted", "container restarted"),
                            ("rejected", "rejected by its node"),
                            ("lost", "end not confirmed"),
                        ],
                        max_length=12,
                        verbose_name="what happened",
                    ),
                ),
                ("code", models.CharField(max_length=64)),
                ("data", models.JSONField(default=dict)),
                ("verdict", models.CharField(blank=True, max_length=64, verbose_name="verdict")),
                ("verdict_data", models.JSONField(default=dict)),
                ("started_at", models.DateTimeField(null=True, verbose_name="started at")),
                ("ended_at", models.DateTimeField(verbose_name="ended at")),
                ("facts", models.JSONField(default=dict)),
                ("lines", models.JSONField(default=list)),
                ("gpus", models.JSONField(default=list, verbose_name="GPUs")),
                ("due_at", models.DateTimeField(null=True)),
                ("queued_at", models.DateTimeField(null=True)),
                ("gathered_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "post-mortem",
                "verbose_name_plural": "post-mortems",
                "ordering": ["-ended_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="PostMortemNote",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("author_name", models.CharField(max_length=150)),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("text", models.TextField(max_length=4000)),
            ],
            options={
                "ordering": ["at", "id"],
            },
        ),
        migrations.CreateModel(
            name="SeenPod",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uid", models.CharField(max_length=64)),
                ("run", models.UUIDField(null=True)),
                ("namespace", models.CharField(max_length=253)),
                ("name", models.CharField(blank=True, max_length=253)),
                ("node", models.CharField(blank=True, max_length=253)),
                ("status", models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                ("events", models.JSONField(db_default=models.Value([], models.JSONField()), default=list)),
                ("seen_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Suspicion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=600)),
                ("since", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Track",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("key", models.UUIDField(unique=True)),
                ("node", models.CharField(blank=True, max_length=253)),
                ("device", models.CharField(blank=True, max_length=96)),
                ("label", models.CharField(blank=True, max_length=120)),
                (
                    "runs",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), default=list, size=None
                    ),
                ),
                ("is_share", models.BooleanField(default=False)),
                ("seen_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Trouble",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "about",
                    models.CharField(
                        choices=[
                            ("cluster", "cluster"),
                            ("node", "node"),
                            ("gpu", "GPU"),
                            ("volume", "volume"),
                            ("addresses", "addresses"),
                            ("part", "part of the cluster"),
                            ("versions", "versions"),
                            ("load", "load and storage"),
                        ],
                        max_length=12,
                        verbose_name="about",
                    ),
                ),
                ("subject", models.CharField(blank=True, max_length=512, verbose_name="subject")),
                ("node", models.CharField(blank=True, max_length=253, verbose_name="node")),
                ("code", models.CharField(max_length=64, verbose_name="code")),
                ("data", models.JSONField(default=dict)),
                ("takes_out", models.BooleanField(default=False, verbose_name="out of use")),
                ("since", models.DateTimeField(verbose_name="since")),
                ("ended_at", models.DateTimeField(null=True, verbose_name="ended at")),
            ],
            options={
                "verbose_name": "trouble",
                "verbose_name_plural": "troubles",
                "ordering": ["-since", "id"],
            },
        ),
        migrations.CreateModel(
            name="Validation",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("node", models.CharField(max_length=253, verbose_name="node")),
                ("image", models.CharField(max_length=512, verbose_name="image")),
                ("asked_at", models.DateTimeField(auto_now_add=True, verbose_name="asked at")),
                ("queued_at", models.DateTimeField(null=True)),
                (
                    "job_uid",
                    models.CharField(blank=True, help_text="Of its Job, once that was made.", max_length=64),
                ),
                ("started_at", models.DateTimeField(null=True, verbose_name="started at")),
                ("ended_at", models.DateTimeField(null=True, verbose_name="ended at")),
                (
                    "outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "under way"),
                            ("passed", "passed"),
                            ("failed", "failed"),
                            ("not-run", "could not run"),
                        ],
                        max_length=8,
                        verbose_name="result",
                    ),
                ),
                ("code", models.CharField(blank=True, max_length=64)),
                ("data", models.JSONField(default=dict)),
                ("log", models.TextField(blank=True, verbose_name="log")),
                ("overruled_at", models.DateTimeField(null=True, verbose_name="overruled at")),
            ],
            options={
                "verbose_name": "test of GPUs",
                "verbose_name_plural": "tests of GPUs",
                "ordering": ["-asked_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="XidEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("node", models.CharField(max_length=253)),
                ("gpu", models.CharField(blank=True, max_length=96)),
                ("xid", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                ("received_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "ordering": ["-at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="AgentState",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("node", models.CharField(max_length=253)),
                ("agent", models.CharField(max_length=64)),
                ("sequence", models.PositiveBigIntegerField(default=0)),
                (
                    "taken_at",
                    models.DateTimeField(help_text="When the newest report was taken, by the node's clock."),
                ),
                ("seen_at", models.DateTimeField(help_text="When it came, by ours.")),
                ("interval_seconds", models.FloatField(default=5, help_text="Between its last two reports.")),
                ("dropped", models.PositiveIntegerField(default=0)),
                ("driver_version", models.CharField(blank=True, max_length=40)),
                ("cuda_version", models.CharField(blank=True, max_length=40)),
                ("troubles", models.JSONField(default=list)),
                (
                    "counts_oom_kills",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="It sees the memory limits of the node's pods.",
                    ),
                ),
                (
                    "is_simulated",
                    models.BooleanField(default=False, help_text="Of a trial's cluster that plays its GPUs."),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agents",
                        to="clusters.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ["node"],
            },
        ),
        migrations.CreateModel(
            name="AgentToken",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=80, verbose_name="name")),
                ("prefix", models.CharField(editable=False, max_length=16, unique=True)),
                ("digest", models.CharField(editable=False, max_length=64)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                (
                    "last_used_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="last used at"),
                ),
                ("revoked_at", models.DateTimeField(editable=False, null=True, verbose_name="revoked at")),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agent_tokens",
                        to="clusters.cluster",
                        verbose_name="cluster",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "token of agents",
                "verbose_name_plural": "tokens of agents",
                "ordering": ["cluster", "-created_at"],
            },
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("group", models.CharField(db_index=True, max_length=200)),
                ("code", models.CharField(max_length=64, verbose_name="code")),
                ("data", models.JSONField(default=dict)),
                (
                    "severity",
                    models.PositiveSmallIntegerField(
                        choices=[(1, "info"), (2, "warning"), (3, "critical")], verbose_name="severity"
                    ),
                ),
                (
                    "pools",
                    models.JSONField(default=list, help_text="Ids of the pools that its nodes belong to."),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("firing", "firing"),
                            ("acknowledged", "acknowledged"),
                            ("silenced", "silenced"),
                            ("resolved", "resolved"),
                        ],
                        default="firing",
                        max_length=12,
                        verbose_name="state",
                    ),
                ),
                ("count", models.PositiveIntegerField(default=0, verbose_name="members")),
                ("open_count", models.PositiveIntegerField(default=0)),
                ("since", models.DateTimeField(verbose_name="since")),
                ("last_at", models.DateTimeField(verbose_name="last member")),
                ("round", models.PositiveIntegerField(default=1)),
                ("round_at", models.DateTimeField()),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("silenced_until", models.DateTimeField(null=True)),
                ("resolved_at", models.DateTimeField(null=True)),
                ("escalated_at", models.DateTimeField(null=True)),
                (
                    "acknowledged_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="clusters.cluster",
                        verbose_name="cluster",
                    ),
                ),
                (
                    "resolved_by",
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
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "alert",
                "verbose_name_plural": "alerts",
                "ordering": ["-since", "-id"],
            },
        ),
        migrations.CreateModel(
            name="AlertMember",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=200)),
                ("code", models.CharField(max_length=64)),
                ("data", models.JSONField(default=dict)),
                (
                    "severity",
                    models.PositiveSmallIntegerField(choices=[(1, "info"), (2, "warning"), (3, "critical")]),
                ),
                ("node", models.CharField(blank=True, max_length=253)),
                ("name", models.CharField(blank=True, max_length=512)),
                ("link", models.CharField(blank=True, max_length=240)),
                ("since", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "alert",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="members",
                        to="monitoring.alert",
                    ),
                ),
            ],
            options={
                "ordering": ["since", "pk"],
            },
        ),
        migrations.CreateModel(
            name="AlertRoute",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=80, verbose_name="name")),
                (
                    "way",
                    models.CharField(
                        choices=[
                            ("admins", "mail to all admins"),
                            ("mail", "mail"),
                            ("webhook", "webhook"),
                            ("slack", "Slack"),
                            ("mattermost", "Mattermost"),
                            ("feishu", "Feishu / Lark"),
                            ("dingtalk", "DingTalk"),
                            ("heartbeat", "heartbeat (dead man's switch)"),
                        ],
                        max_length=12,
                        verbose_name="way",
                    ),
                ),
                ("address", models.TextField(blank=True, editable=False)),
                ("secret", models.TextField(blank=True, editable=False)),
                (
                    "host",
                    models.CharField(blank=True, editable=False, max_length=254, verbose_name="where to"),
                ),
                (
                    "least_severity",
                    models.PositiveSmallIntegerField(
                        choices=[(1, "info"), (2, "warning"), (3, "critical")],
                        default=2,
                        verbose_name="from severity",
                    ),
                ),
                (
                    "escalates_after_minutes",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="Minutes. Empty: at once.",
                        null=True,
                        verbose_name="only if nobody acknowledged it within",
                    ),
                ),
                (
                    "every_minutes",
                    models.PositiveSmallIntegerField(
                        default=5, help_text="Minutes; for heartbeats only.", verbose_name="heartbeat every"
                    ),
                ),
                (
                    "may_reach_inside",
                    models.BooleanField(
                        default=False,
                        help_text="For a route of a tenant: addresses of this server and of the clusters are not refused.",
                        verbose_name="may reach Berth's own networks",
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True, verbose_name="enabled")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="created at",
                    ),
                ),
                ("last_beat_at", models.DateTimeField(editable=False, null=True)),
                ("beat_tried_at", models.DateTimeField(editable=False, null=True)),
                ("beat_error", models.CharField(blank=True, editable=False, max_length=240)),
                (
                    "cluster",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="clusters.cluster",
                        verbose_name="only of the cluster",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="quotas.pool",
                        verbose_name="only of the pool",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                        verbose_name="only of the tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "alert route",
                "verbose_name_plural": "alert routes",
                "ordering": ["-created_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="AlertDelivery",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "occasion",
                    models.CharField(
                        choices=[
                            ("firing", "firing"),
                            ("escalated", "escalated"),
                            ("resolved", "resolved"),
                            ("test", "test"),
                        ],
                        max_length=12,
                        verbose_name="occasion",
                    ),
                ),
                ("round", models.PositiveIntegerField(default=1)),
                ("batch", models.UUIDField(db_index=True, null=True, verbose_name="message")),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "waiting"), ("sent", "sent"), ("given_up", "given up")],
                        default="waiting",
                        max_length=12,
                        verbose_name="state",
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0, verbose_name="attempts")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created at"
                    ),
                ),
                ("due_at", models.DateTimeField(null=True, verbose_name="next attempt")),
                ("status_code", models.PositiveSmallIntegerField(null=True, verbose_name="answer")),
                ("error", models.CharField(blank=True, max_length=240, verbose_name="last error")),
                ("sent_at", models.DateTimeField(null=True, verbose_name="sent at")),
                (
                    "alert",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="monitoring.alert",
                        verbose_name="alert",
                    ),
                ),
                (
                    "recipient",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="recipient",
                    ),
                ),
                (
                    "route",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="monitoring.alertroute",
                        verbose_name="route",
                    ),
                ),
            ],
            options={
                "verbose_name": "delivery of an alert",
                "verbose_name_plural": "deliveries of alerts",
                "ordering": ["-created_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="BusyDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("run", models.UUIDField(null=True)),
                ("day", models.IntegerField(help_text="Days since 1970, in UTC.")),
                ("seconds", models.FloatField(default=0)),
            ],
            options={
                "indexes": [models.Index(fields=["day"], name="busy_days_by_age")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "day"), name="one_busy_day_of_a_run", nulls_distinct=False
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="FailedStart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("node", models.CharField(max_length=253)),
                ("namespace", models.CharField(max_length=253)),
                ("pod", models.CharField(max_length=253)),
                ("code", models.CharField(max_length=64)),
                ("text", models.TextField(blank=True)),
                ("is_volume", models.BooleanField(default=False)),
                ("count", models.PositiveIntegerField(default=1)),
                ("last_at", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
                    ),
                ),
            ],
            options={
                "ordering": ["node", "namespace", "pod"],
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(FIGURES, "DROP TABLE monitoring_figure")],
            state_operations=[
                migrations.CreateModel(
                    name="Figure",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "track_id",
                                "at",
                                "step_seconds",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("track_id", models.IntegerField()),
                        (
                            "at",
                            models.IntegerField(
                                help_text="Seconds since 1970: of the sample, or when the step began."
                            ),
                        ),
                        ("memory_mib", models.IntegerField(null=True)),
                        (
                            "use_thousandths",
                            models.IntegerField(
                                help_text="Of a percent of a GPU; of a core of a CPU.", null=True
                            ),
                        ),
                        ("step_seconds", models.SmallIntegerField()),
                        ("samples", models.SmallIntegerField()),
                        ("power_watts", models.SmallIntegerField(null=True)),
                        ("temperature_celsius", models.SmallIntegerField(null=True)),
                    ],
                    options={
                        "indexes": [models.Index(fields=["at"], name="figures_by_age")],
                    },
                ),
            ],
        ),
        migrations.CreateModel(
            name="Finding",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "what",
                    models.CharField(
                        choices=[("unwanted", "unwanted"), ("missing", "missing"), ("changed", "changed")],
                        max_length=8,
                        verbose_name="what",
                    ),
                ),
                ("kind", models.CharField(max_length=40, verbose_name="kind")),
                ("namespace", models.CharField(blank=True, max_length=253, verbose_name="namespace")),
                ("name", models.CharField(max_length=253, verbose_name="name")),
                (
                    "uid",
                    models.CharField(
                        blank=True,
                        help_text="Of the object; empty: missing.",
                        max_length=64,
                        verbose_name="uid",
                    ),
                ),
                ("workspace_uuid", models.UUIDField(null=True, verbose_name="workspace")),
                ("tenant_slug", models.CharField(blank=True, max_length=63, verbose_name="tenant")),
                ("data", models.JSONField(default=dict)),
                ("digest", models.CharField(blank=True, help_text="Of what was changed.", max_length=16)),
                ("first_seen_at", models.DateTimeField(verbose_name="first seen at")),
                (
                    "confirmed_at",
                    models.DateTimeField(help_text="It lasted; from here on it is shown.", null=True),
                ),
                ("accepted_at", models.DateTimeField(help_text="It may stay as it is.", null=True)),
                (
                    "last_seen_at",
                    models.DateTimeField(
                        help_text="Set when it is over.", null=True, verbose_name="last seen at"
                    ),
                ),
                ("resolved_at", models.DateTimeField(null=True, verbose_name="resolved at")),
                (
                    "accepted_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="clusters.cluster",
                        verbose_name="cluster",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "verbose_name": "drift finding",
                "verbose_name_plural": "drift findings",
                "ordering": ["-first_seen_at", "id"],
            },
        ),
        migrations.AddField(
            model_name="finding",
            name="workspace",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="workspaces.workspace",
            ),
        ),
        migrations.AddField(
            model_name="idlelook",
            name="cluster",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
            ),
        ),
        migrations.AddField(
            model_name="idlepolicy",
            name="pool",
            field=models.ForeignKey(
                blank=True,
                help_text="Empty: all pools.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="quotas.pool",
                verbose_name="pool",
            ),
        ),
        migrations.AddField(
            model_name="idlepolicy",
            name="tenant",
            field=models.ForeignKey(
                blank=True,
                help_text="Empty: all tenants.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="accounts.tenant",
                verbose_name="tenant",
            ),
        ),
        migrations.AddField(
            model_name="isolationproof",
            name="asked_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="isolationproof",
            name="cluster",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="isolation_proofs",
                to="clusters.cluster",
            ),
        ),
        migrations.AddField(
            model_name="nodeload",
            name="cluster",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
            ),
        ),
        migrations.AddField(
            model_name="oomkill",
            name="cluster",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
            ),
        ),
        migrations.AddField(
            model_name="postmortem",
            name="cluster",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="clusters.cluster",
                verbose_name="cluster",
            ),
        ),
        migrations.AddField(
            model_name="postmortem",
            name="owner",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
                verbose_name="owner",
            ),
        ),
        migrations.AddField(
            model_name="postmortem",
            name="tenant",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="accounts.tenant",
                verbose_name="tenant",
            ),
        ),
        migrations.AddField(
            model_name="postmortemnote",
            name="author",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="postmortemnote",
            name="post_mortem",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="notes", to="monitoring.postmortem"
            ),
        ),
        migrations.AddField(
            model_name="seenpod",
            name="cluster",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
            ),
        ),
        migrations.AddField(
            model_name="suspicion",
            name="cluster",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
            ),
        ),
        migrations.AddField(
            model_name="track",
            name="cluster",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
            ),
        ),
        migrations.AddField(
            model_name="trouble",
            name="cluster",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="troubles",
                to="clusters.cluster",
                verbose_name="cluster",
            ),
        ),
        migrations.AddField(
            model_name="validation",
            name="asked_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
                verbose_name="asked by",
            ),
        ),
        migrations.AddField(
            model_name="validation",
            name="cluster",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="validations",
                to="clusters.cluster",
                verbose_name="cluster",
            ),
        ),
        migrations.AddField(
            model_name="validation",
            name="overruled_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="validation",
            name="pool",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="quotas.pool",
                verbose_name="pool",
            ),
        ),
        migrations.AddField(
            model_name="xidevent",
            name="cluster",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
            ),
        ),
        migrations.AddConstraint(
            model_name="agentstate",
            constraint=models.UniqueConstraint(fields=("cluster", "node"), name="one_agent_per_node"),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(fields=["state", "-since", "-id"], name="alerts_by_state"),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("resolved_at__isnull", False), ("state", "resolved")),
                    models.Q(models.Q(("state", "resolved"), _negated=True), ("resolved_at__isnull", True)),
                    _connector="OR",
                ),
                name="resolved_alert_has_a_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="alertmember",
            constraint=models.UniqueConstraint(fields=("alert", "key"), name="member_of_an_alert_once"),
        ),
        migrations.AddConstraint(
            model_name="alertmember",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at__isnull", True)), fields=("key",), name="firing_in_one_alert"
            ),
        ),
        migrations.AddConstraint(
            model_name="alertroute",
            constraint=models.UniqueConstraint(
                condition=models.Q(("way", "admins")), fields=("way",), name="one_route_to_all_admins"
            ),
        ),
        migrations.AddIndex(
            model_name="alertdelivery",
            index=models.Index(
                condition=models.Q(("state", "waiting")), fields=["due_at"], name="alert_outbox"
            ),
        ),
        migrations.AddIndex(
            model_name="alertdelivery",
            index=models.Index(fields=["route", "recipient", "-sent_at"], name="alert_deliveries_of_a_route"),
        ),
        migrations.AddConstraint(
            model_name="alertdelivery",
            constraint=models.UniqueConstraint(
                condition=models.Q(("alert__isnull", False)),
                fields=("alert", "occasion", "round", "route", "recipient"),
                name="one_delivery_of_an_occasion",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="alertdelivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("due_at__isnull", False), ("state", "waiting")),
                    models.Q(models.Q(("state", "waiting"), _negated=True), ("due_at__isnull", True)),
                    _connector="OR",
                ),
                name="alert_that_waits_has_a_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="failedstart",
            constraint=models.UniqueConstraint(
                fields=("cluster", "node", "namespace", "pod", "code"), name="one_row_per_failed_start"
            ),
        ),
        migrations.AddIndex(
            model_name="finding",
            index=models.Index(fields=["resolved_at", "confirmed_at"], name="finding_open"),
        ),
        migrations.AddConstraint(
            model_name="finding",
            constraint=models.UniqueConstraint(
                condition=models.Q(("resolved_at__isnull", True)),
                fields=("cluster", "what", "kind", "namespace", "name", "uid"),
                name="one_open_finding_per_object",
            ),
        ),
        migrations.AddIndex(
            model_name="idlelook",
            index=models.Index(fields=["cluster", "asked_at"], name="idle_looks_of_a_cluster"),
        ),
        migrations.AddConstraint(
            model_name="idlepolicy",
            constraint=models.UniqueConstraint(
                fields=("tenant", "pool"), name="one_idle_policy_of_tenant_and_pool", nulls_distinct=False
            ),
        ),
        migrations.AddConstraint(
            model_name="idlepolicy",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("night_minutes__isnull", True),
                    models.Q(("night_from__isnull", False), ("night_until__isnull", False)),
                    _connector="OR",
                ),
                name="idle_night_has_its_hours",
                violation_error_message="Give the hours of the night as well.",
            ),
        ),
        migrations.AddIndex(
            model_name="isolationproof",
            index=models.Index(fields=["cluster", "-asked_at"], name="proofs_of_a_cluster"),
        ),
        migrations.AddConstraint(
            model_name="isolationproof",
            constraint=models.UniqueConstraint(
                condition=models.Q(("cleared_at__isnull", True)),
                fields=("cluster",),
                name="one_isolation_proof_at_a_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="isolationproof",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at__isnull", True), ("outcome", "")),
                    models.Q(("ended_at__isnull", False), models.Q(("outcome", ""), _negated=True)),
                    _connector="OR",
                ),
                name="proof_ended_with_an_outcome",
            ),
        ),
        migrations.AddConstraint(
            model_name="nodeload",
            constraint=models.UniqueConstraint(fields=("cluster", "node"), name="one_load_per_node"),
        ),
        migrations.AddIndex(
            model_name="oomkill",
            index=models.Index(fields=["last_at"], name="oom_kills_by_age"),
        ),
        migrations.AddConstraint(
            model_name="oomkill",
            constraint=models.UniqueConstraint(
                fields=("cluster", "pod_uid", "container"), name="one_count_of_oom_kills"
            ),
        ),
        migrations.AddIndex(
            model_name="postmortem",
            index=models.Index(fields=["-ended_at", "-id"], name="post_mortem_newest"),
        ),
        migrations.AddIndex(
            model_name="postmortem",
            index=models.Index(fields=["tenant", "-ended_at"], name="post_mortem_tenant"),
        ),
        migrations.AddIndex(
            model_name="postmortem",
            index=models.Index(fields=["holder_id", "-ended_at"], name="post_mortem_holder"),
        ),
        migrations.AddIndex(
            model_name="postmortem",
            index=models.Index(
                condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="post_mortem_due"
            ),
        ),
        migrations.AddIndex(
            model_name="seenpod",
            index=models.Index(fields=["run"], name="seen_pod_run"),
        ),
        migrations.AddIndex(
            model_name="seenpod",
            index=models.Index(fields=["seen_at"], name="seen_pod_age"),
        ),
        migrations.AddConstraint(
            model_name="seenpod",
            constraint=models.UniqueConstraint(fields=("cluster", "uid"), name="one_row_per_seen_pod"),
        ),
        migrations.AddConstraint(
            model_name="suspicion",
            constraint=models.UniqueConstraint(fields=("cluster", "key"), name="one_suspicion_of_a_kind"),
        ),
        migrations.AddIndex(
            model_name="track",
            index=django.contrib.postgres.indexes.GinIndex(fields=["runs"], name="tracks_of_a_run"),
        ),
        migrations.AddIndex(
            model_name="track",
            index=models.Index(fields=["cluster", "device", "-seen_at"], name="tracks_of_a_device"),
        ),
        migrations.AddIndex(
            model_name="track",
            index=models.Index(fields=["seen_at"], name="tracks_by_age"),
        ),
        migrations.AddIndex(
            model_name="trouble",
            index=models.Index(fields=["cluster", "node", "ended_at"], name="troubles_of_a_node"),
        ),
        migrations.AddConstraint(
            model_name="trouble",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at__isnull", True)),
                fields=("cluster", "node", "about", "subject", "code"),
                name="one_open_trouble_of_a_node",
            ),
        ),
        migrations.AddIndex(
            model_name="validation",
            index=models.Index(fields=["cluster", "node", "-asked_at"], name="validations_of_a_node"),
        ),
        migrations.AddConstraint(
            model_name="validation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at__isnull", True)),
                fields=("cluster", "node"),
                name="one_validation_at_a_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="validation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at__isnull", True), ("outcome", "")),
                    models.Q(("ended_at__isnull", False), models.Q(("outcome", ""), _negated=True)),
                    _connector="OR",
                ),
                name="ended_with_an_outcome",
            ),
        ),
        migrations.AddIndex(
            model_name="xidevent",
            index=models.Index(fields=["cluster", "node", "-at"], name="xids_of_a_node"),
        ),
    ]
