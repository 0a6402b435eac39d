"""What is gone says so; looks hear of troubles from the watch, and remember no warning in the row."""

from django.db import migrations, models


def say_deleted(apps, schema_editor):
    rows = apps.get_model("workspaces", "Workspace").objects
    rows.filter(phase="deleting", deleted_at__isnull=False).update(phase="deleted")


def say_deleting(apps, schema_editor):
    rows = apps.get_model("workspaces", "Workspace").objects
    rows.filter(phase="deleted").update(phase="deleting")


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0005_jupyter_host")]

    operations = [
        migrations.AlterField(
            model_name="workspace",
            name="phase",
            field=models.CharField(
                choices=[
                    ("waiting", "waiting"),
                    ("starting", "starting"),
                    ("ready", "ready"),
                    ("stopping", "stopping"),
                    ("stopped", "stopped"),
                    ("failed", "failed"),
                    ("deleting", "deleting"),
                    ("deleted", "deleted"),
                ],
                default="waiting",
                max_length=8,
                verbose_name="phase",
            ),
        ),
        migrations.RunPython(say_deleted, say_deleting, elidable=True),
        migrations.RemoveField(model_name="workspace", name="warned"),
    ]
