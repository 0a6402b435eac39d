"""Extended resources beside GPUs: what pods of a pool request, and what an admitted claim holds of them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quotas", "0006_members")]

    operations = [
        migrations.AddField(
            "pool",
            "extra_resources",
            models.JSONField(
                blank=True,
                db_default={},
                default=dict,
                help_text="What each pod requests besides, for RDMA: so many for each of its GPUs, or parts of one.",
                verbose_name="resources beside GPUs",
            ),
        ),
        migrations.AddField("claim", "extra", models.JSONField(db_default={}, default=dict)),
    ]
