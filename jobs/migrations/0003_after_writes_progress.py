"""Jobs that wait for others and publish datasets; values that their programs report; what attempts had."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0001_initial"),
        ("storage", "0010_connections"),
    ]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="gpus",
            field=models.JSONField(db_default=models.Value([], models.JSONField()), default=list),
        ),
        migrations.AddField(
            model_name="attempt",
            name="gpu_use_percent",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="attempt",
            name="tail",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="job",
            name="is_held",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="job",
            name="metrics_path",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.AddField(
            model_name="job",
            name="metrics_port",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="job",
            name="version",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="storage.snapshot",
            ),
        ),
        migrations.AddField(
            model_name="job",
            name="writes",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="storage.volume",
            ),
        ),
        migrations.AddField(
            model_name="part",
            name="metrics",
            field=models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
        ),
        migrations.AddField(
            model_name="part",
            name="pace",
            field=models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
        ),
        migrations.AddField(
            model_name="part",
            name="progress",
            field=models.FloatField(null=True),
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
                "constraints": [
                    models.UniqueConstraint(
                        fields=("job", "predecessor"), name="one_dependency_per_pair_of_jobs"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("job", models.F("predecessor")), _negated=True),
                        name="no_job_waits_for_itself",
                    ),
                ],
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
                "constraints": [
                    models.UniqueConstraint(fields=("part", "name"), name="one_series_of_a_name_per_part")
                ],
            },
        ),
    ]
