from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_refused_input"),
    ]

    operations = [
        migrations.AddField(
            model_name="socketticket",
            name="session_key",
            field=models.CharField(blank=True, db_default="", default="", max_length=40),
        ),
    ]
