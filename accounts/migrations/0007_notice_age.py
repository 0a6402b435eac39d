from django.db import migrations, models

from vitals.indexes import AddIndexBeside


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("accounts", "0006_directory")]

    operations = [
        AddIndexBeside(model_name="notice", index=models.Index(fields=["at"], name="notice_age")),
    ]
