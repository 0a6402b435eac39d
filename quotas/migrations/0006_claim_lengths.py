"""The newest runs of a pool that have ended, without reading all of them."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False  # the index is made beside whatever is being written

    dependencies = [("quotas", "0005_forecast")]

    operations = [
        AddIndexConcurrently(
            model_name="claim",
            index=models.Index(
                fields=["pool", "-released_at"],
                condition=Q(state="released", admitted_at__isnull=False),
                name="claim_lengths",
            ),
        ),
    ]
