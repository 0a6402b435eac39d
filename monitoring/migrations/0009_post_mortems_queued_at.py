from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0008_parts_and_load"),
    ]

    operations = [
        migrations.AddField(
            model_name="postmortem",
            name="queued_at",
            field=models.DateTimeField(null=True),
        ),
    ]
