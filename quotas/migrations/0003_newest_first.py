"""A page of the newest claims, without reading all of them."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # the index is made beside whatever is being written

    dependencies = [("quotas", "0002_pool_in_use")]

    operations = [
        AddIndexConcurrently(
            model_name="claim",
            index=models.Index(fields=["-created_at", "-id"], name="claim_newest"),
        ),
    ]
