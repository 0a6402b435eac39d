from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_reading_the_trail")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="password_is_first",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="An admin made it: it lets in once, to choose another.",
            ),
        ),
    ]
