from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0004_validation"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="track",
            index=models.Index(fields=["seen_at"], name="tracks_by_age"),
        ),
    ]
