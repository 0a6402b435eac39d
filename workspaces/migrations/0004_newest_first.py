"""A page of the newest workspaces, without reading all of them."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # the index is made beside whatever is being written

    dependencies = [("workspaces", "0003_lifetime")]

    operations = [
        AddIndexConcurrently(
            model_name="workspace",
            index=models.Index(fields=["-created_at", "-id"], name="workspace_newest"),
        ),
    ]
