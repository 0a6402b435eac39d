from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("accounts", "0006_directory")]

    operations = [
        AddIndexConcurrently(model_name="notice", index=models.Index(fields=["at"], name="notice_age")),
    ]
