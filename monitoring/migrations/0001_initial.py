import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

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
        ("clusters", "0001_initial"),
        ("quotas", "0001_initial"),
        ("workspaces", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
                        choices=[
                            ("unwanted", "unwanted"),
                            ("missing", "missing"),
                            ("changed", "changed"),
                            ("kept", "kept volume"),
                        ],
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
