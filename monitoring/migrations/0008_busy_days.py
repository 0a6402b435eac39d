from django.db import migrations, models


class Migration(migrations.Migration):
    """Days that are over are summed up once, by the worker, those from before as well."""

    dependencies = [
        ("monitoring", "0007_troubles_by_node"),
    ]

    operations = [
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
    ]
