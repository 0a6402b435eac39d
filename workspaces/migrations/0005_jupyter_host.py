from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0004_sessions_by_digest"),
    ]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="jupyter_host",
            field=models.CharField(blank=True, db_default="", default="", max_length=253),
        ),
    ]
