"""Places in the queue, and what becomes of forecasts."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quotas", "0004_sharing_borrowing_bookings_budgets")]

    operations = [
        migrations.AddField("claim", "position", models.PositiveIntegerField(null=True)),
        migrations.AddField("claim", "units_ahead", models.PositiveIntegerField(null=True)),
        migrations.AddField("claim", "told_from", models.DateTimeField(null=True)),
        migrations.AddField("claim", "told_to", models.DateTimeField(null=True)),
        migrations.AddField(
            "pool", "forecast_early", models.FloatField(db_default=1, default=1, editable=False)
        ),
        migrations.AddField(
            "pool", "forecast_late", models.FloatField(db_default=1, default=1, editable=False)
        ),
        migrations.AddField("pool", "forecast_at", models.DateTimeField(editable=False, null=True)),
    ]
