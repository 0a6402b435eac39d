"""Until when a run goes on whose budget is spent, and what is not in the ledger yet, without reading all claims."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False  # the index is made beside whatever is being written

    dependencies = [("quotas", "0007_ends_that_are_promised")]

    operations = [
        migrations.AddField(
            model_name="claim",
            name="budget_ends_at",
            field=models.DateTimeField(null=True),
        ),
        AddIndexConcurrently(
            model_name="claim",
            index=models.Index(
                fields=["released_at"],
                condition=Q(state="released", settled_until__isnull=True, admitted_at__isnull=False),
                name="claim_unsettled",
            ),
        ),
    ]
