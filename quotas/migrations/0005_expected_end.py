"""End that a run is expected to have, for forecasts."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("quotas", "0004_part_of_a_holder"),
    ]

    operations = [
        migrations.AddField(
            model_name="claim",
            name="expected_end_at",
            field=models.DateTimeField(null=True),
        ),
    ]
