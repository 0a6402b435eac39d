"""A run of whose trouble the cluster told."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0004_newest_first"),
    ]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="warned",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
