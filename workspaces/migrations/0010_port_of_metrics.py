"""Port and path where a workspace serves figures for Prometheus."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0009_images_below"),
    ]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="metrics_path",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.AddField(
            model_name="workspace",
            name="metrics_port",
            field=models.PositiveIntegerField(null=True),
        ),
    ]
