import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Figure",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                (
                    "labels",
                    models.CharField(help_text="JSON, sorted: it is half of the key.", max_length=240),
                ),
                ("value", models.FloatField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("name", "labels"), name="one_row_per_figure")
                ],
            },
        ),
        migrations.CreateModel(
            name="Process",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("part", models.CharField(max_length=20)),
                ("host", models.CharField(max_length=253)),
                ("pid", models.PositiveIntegerField()),
                ("seen_at", models.DateTimeField(help_text="By the database's clock.")),
                (
                    "since",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="Since when its part is heard, without a break.",
                    ),
                ),
                (
                    "gauges",
                    models.JSONField(
                        default=dict, help_text="What it has at the moment, by the gauge's name."
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("part", "host", "pid"), name="one_row_per_process")
                ],
            },
        ),
    ]
