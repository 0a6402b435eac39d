from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # the index is made beside whatever is being written

    dependencies = [("accounts", "0006_rates")]

    operations = [
        migrations.AlterModelOptions(
            name="user", options={"verbose_name": "person", "verbose_name_plural": "people"}
        ),
        AddIndexConcurrently(
            model_name="auditentry",
            index=models.Index(fields=["target_kind", "target_id"], name="audit_of_one_thing"),
        ),
    ]
