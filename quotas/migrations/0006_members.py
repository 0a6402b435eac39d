"""Claims of several members. Admitted claims learn the node of their only member before the rule that all have some."""

import django.contrib.postgres.fields
from django.db import migrations, models

PLACE = "UPDATE quotas_claim SET nodes = ARRAY[node] WHERE state = 'admitted'"


class Migration(migrations.Migration):
    dependencies = [("quotas", "0005_expected_end")]

    operations = [
        migrations.AddField(
            "claim", "members", models.PositiveIntegerField(db_default=1, default=1, verbose_name="nodes")
        ),
        migrations.AddField(
            "claim",
            "nodes",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=253),
                blank=True,
                db_default=[],
                default=list,
                size=None,
            ),
        ),
        migrations.RunSQL(PLACE, migrations.RunSQL.noop),
        migrations.AddConstraint(
            "claim", models.CheckConstraint(condition=models.Q(members__gte=1), name="claim_has_a_member")
        ),
        migrations.AddConstraint(
            "claim",
            models.CheckConstraint(
                condition=models.Q(("state", "admitted"), _negated=True)
                | models.Q(nodes__0=models.F("node"), nodes__len=models.F("members")),
                name="admitted_with_all_members",
            ),
        ),
    ]
