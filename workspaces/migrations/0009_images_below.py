"""The catalogue of images moves into the room below. Nothing changes in the database."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def belongs_to(what, name):
    return models.ForeignKey(
        on_delete=django.db.models.deletion.PROTECT, related_name="%(class)ss", to=what, verbose_name=name
    )


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0008_storage_as_volumes"), ("workloads", "0001_initial")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    "workspace",
                    "image",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="workloads.image",
                        verbose_name="image",
                    ),
                ),
                migrations.AlterField("workspace", "owner", belongs_to(settings.AUTH_USER_MODEL, "owner")),
                migrations.AlterField("workspace", "tenant", belongs_to("accounts.tenant", "tenant")),
                migrations.DeleteModel("Image"),
            ]
        )
    ]
