"""Namespace whose Prometheus may scrape workspaces and jobs."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0006_files_image"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="metrics_namespace",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Its pods may reach all ports of workspaces and jobs but those of JupyterLab and SSH. Empty: none may.",
                max_length=63,
                validators=[django.core.validators.RegexValidator("^[a-z0-9]([-a-z0-9]*[a-z0-9])?\\Z")],
                verbose_name="namespace of the Prometheus of workspaces",
            ),
        ),
    ]
