from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0007_shares_of_gpus")]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="ailments",
            field=models.JSONField(db_default=[], default=list),
        ),
    ]
