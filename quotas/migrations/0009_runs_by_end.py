"""When runs ended, for what was used in a month, without reading all that ever ran."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # the index is made beside whatever is being written

    dependencies = [
        ("quotas", "0008_ledger_and_budgets"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="claim",
            index=models.Index(
                condition=models.Q(("admitted_at__isnull", False)),
                fields=["released_at"],
                name="claim_runs_by_end",
            ),
        ),
    ]
