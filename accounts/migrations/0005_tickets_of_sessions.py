from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_trail_by_month"),
    ]

    operations = [
        migrations.AddField(
            model_name="socketticket",
            name="session_row",
            field=models.CharField(blank=True, db_default="", default="", max_length=40),
        ),
    ]
