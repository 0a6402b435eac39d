"""A volume that changes hands causes notices, too."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0006_notices_of_jobs"),
    ]

    operations = [
        migrations.AlterField(
            model_name="notice",
            name="kind",
            field=models.CharField(
                choices=[
                    ("ready", "ready"),
                    ("failed", "failed"),
                    ("stopped", "stopped or interrupted"),
                    ("stops_soon", "stops soon"),
                    ("quota", "quota changed"),
                    ("budget", "budget nearly or fully used"),
                    ("booking", "GPUs booked"),
                    ("health", "GPU or node unhealthy"),
                    ("job", "job over"),
                    ("volume", "volume received"),
                ],
                max_length=16,
                verbose_name="kind",
            ),
        ),
        migrations.AlterField(
            model_name="noticepreference",
            name="kind",
            field=models.CharField(
                choices=[
                    ("ready", "ready"),
                    ("failed", "failed"),
                    ("stopped", "stopped or interrupted"),
                    ("stops_soon", "stops soon"),
                    ("quota", "quota changed"),
                    ("budget", "budget nearly or fully used"),
                    ("booking", "GPUs booked"),
                    ("health", "GPU or node unhealthy"),
                    ("job", "job over"),
                    ("volume", "volume received"),
                ],
                max_length=16,
            ),
        ),
    ]
