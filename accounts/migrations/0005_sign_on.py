from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_notices")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="staff_by_group",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="An admin because of a group; is one while in that group.",
            ),
        ),
        migrations.AddField(
            model_name="membership",
            name="by_group",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="Given by a group of the sign-on; follows that group.",
            ),
        ),
    ]
