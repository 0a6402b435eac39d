from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0003_after_writes_progress")]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="trouble_since",
            field=models.DateTimeField(null=True),
        ),
    ]
