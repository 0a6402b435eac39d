"""Several live claims for one job, each for a part of it. New rule first, so that no moment is without one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quotas", "0003_storage_limits")]

    operations = [
        migrations.AddField("claim", "part", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddConstraint(
            "claim",
            models.UniqueConstraint(
                condition=models.Q(("state", "released"), _negated=True),
                fields=("holder_kind", "holder_id", "part"),
                name="one_live_claim_per_part_of_a_holder",
            ),
        ),
        migrations.RemoveConstraint("claim", "one_live_claim_per_holder"),
    ]
