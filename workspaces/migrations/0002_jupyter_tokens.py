from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="workspacesecret",
            name="gateway_replaced",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="workspacesecret",
            name="handed_to",
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="workspacesecret",
            name="replaced",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
    ]
