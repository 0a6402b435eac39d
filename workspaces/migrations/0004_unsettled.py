from django.db import migrations, models

from vitals.indexes import AddIndexBeside


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("workspaces", "0003_warm_images")]

    operations = [
        AddIndexBeside(
            model_name="workspace",
            index=models.Index(
                fields=["pool"],
                condition=models.Q(
                    ("phase__in", ("starting", "stopping", "deleting")),
                    models.Q(("ending", ""), _negated=True),
                    ("dirty_since__isnull", False),
                    _connector="OR",
                ),
                name="workspace_unsettled",
            ),
        ),
    ]
