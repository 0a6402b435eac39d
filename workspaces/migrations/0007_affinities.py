from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("workspaces", "0006_phase_deleted")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="workspace", name="affinities", field=models.JSONField(db_default={}, default=dict)
        ),
    ]
