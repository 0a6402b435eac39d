"""People may hear that what they run on is not well."""

from django.db import migrations, models

KINDS = [
    ("ready", "ready"),
    ("failed", "failed"),
    ("stopped", "stopped or interrupted"),
    ("stops_soon", "stops soon"),
    ("quota", "quota changed"),
    ("budget", "budget nearly or wholly spent"),
    ("booking", "GPUs booked"),
    ("health", "GPU or node not well"),
]


class Migration(migrations.Migration):
    dependencies = [("accounts", "0007_notices_of_bookings")]

    operations = [
        migrations.AlterField(
            model_name="notice",
            name="kind",
            field=models.CharField(choices=KINDS, max_length=16, verbose_name="kind"),
        ),
        migrations.AlterField(
            model_name="noticepreference",
            name="kind",
            field=models.CharField(choices=KINDS, max_length=16),
        ),
    ]
