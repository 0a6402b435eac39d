"""The figures' table has one part for each step of age: each is vacuumed alone, and samples come and go in the smallest."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

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
    dependencies = [
        ("clusters", "0006_gpus"),
        ("monitoring", "0002_gpus"),
    ]

    operations = [
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
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
                    ),
                ),
            ],
            options={
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(fields=["runs"], name="tracks_of_a_run"),
                    models.Index(fields=["cluster", "device", "-seen_at"], name="tracks_of_a_device"),
                ],
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
    ]
