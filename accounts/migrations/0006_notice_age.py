from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("accounts", "0005_lapses_and_visible_names")]

    operations = [
        AddIndexConcurrently(model_name="notice", index=models.Index(fields=["at"], name="notice_age")),
    ]
