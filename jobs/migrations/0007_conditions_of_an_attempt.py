from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0006_trouble_of_an_attempt")]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="conditions",
            field=models.JSONField(db_default=models.Value([], models.JSONField()), default=list),
        ),
    ]
