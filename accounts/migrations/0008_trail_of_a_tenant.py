from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # the index is made beside whatever is being written

    dependencies = [("accounts", "0007_people_and_their_history")]

    operations = [
        AddIndexConcurrently(
            model_name="auditentry",
            index=models.Index(fields=["tenant", "-at", "-id"], name="audit_newest_of_tenant"),
        ),
    ]
