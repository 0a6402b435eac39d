"""The trail of one thing, and of one tenant, without reading all of it."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # the indexes are made beside whatever is being written

    dependencies = [("accounts", "0003_rates")]

    operations = [
        AddIndexConcurrently(
            model_name="auditentry",
            index=models.Index(fields=["target_kind", "target_id"], name="audit_of_one_thing"),
        ),
        AddIndexConcurrently(
            model_name="auditentry",
            index=models.Index(fields=["tenant", "-at", "-id"], name="audit_newest_of_tenant"),
        ),
    ]
