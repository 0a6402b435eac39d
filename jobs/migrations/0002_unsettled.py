from django.db import migrations, models

from vitals.indexes import AddIndexBeside


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0001_initial")]

    operations = [
        AddIndexBeside(
            model_name="job",
            index=models.Index(
                fields=["pool"],
                condition=models.Q(
                    ("deleted_at__isnull", True),
                    models.Q(
                        ("desired", "deleted"),
                        ("dirty_since__isnull", False),
                        models.Q(("phase__in", ("succeeded", "failed", "cancelled")), _negated=True),
                        _connector="OR",
                    ),
                ),
                name="job_unsettled",
            ),
        ),
    ]
