from typing import Any

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def to_members(apps: StateApps, _editor: BaseDatabaseSchemaEditor) -> None:
    """Keep what was seen of the pods of attempts that are under way, whose end has to be proven."""
    attempts: Any = apps.get_model("jobs", "Attempt")
    for one in attempts.objects.exclude(pod_uid="").only(
        "pod_uid", "pod_ended", "node", "exit_code", "reason"
    ):
        one.members = {
            "0": {
                "uid": one.pod_uid,
                "node": one.node,
                "ended": one.pod_ended,
                "exit_code": one.exit_code,
                "reason": one.reason,
                "out_code": "",
            }
        }
        one.save(update_fields=["members"])


def to_one_pod(apps: StateApps, _editor: BaseDatabaseSchemaEditor) -> None:
    attempts: Any = apps.get_model("jobs", "Attempt")
    for one in attempts.objects.exclude(members={}).only("members"):
        member = one.members.get("0") or {"uid": "", "ended": True}
        one.pod_uid, one.pod_ended = member["uid"], member["ended"]
        one.save(update_fields=["pod_uid", "pod_ended"])


class Migration(migrations.Migration):
    dependencies = [("jobs", "0007_conditions_of_an_attempt")]

    operations = [
        migrations.AddField(
            "job",
            "framework",
            models.CharField(
                blank=True,
                choices=[("torchrun", "torchrun"), ("ranks", "ranks")],
                db_default="",
                default="",
                max_length=8,
            ),
        ),
        migrations.AddField(
            "job",
            "nodes",
            models.PositiveSmallIntegerField(
                db_default=1, default=1, help_text="Pods of an attempt, all of which it needs."
            ),
        ),
        migrations.AddField(
            "job", "processes_per_node", models.PositiveSmallIntegerField(db_default=1, default=1)
        ),
        migrations.AddField("job", "checkpoints", models.UUIDField(null=True)),
        migrations.AddField(
            "attempt",
            "members",
            models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
        ),
        migrations.RunPython(to_members, to_one_pod),
        migrations.RemoveField("attempt", "pod_uid"),
        migrations.RemoveField("attempt", "pod_ended"),
    ]
