"""Since when a part is heard: silence counts only while Berth could hear."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("vitals", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="process",
            name="since",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(),
                help_text="Since when its part is heard, without a break.",
            ),
        ),
    ]
