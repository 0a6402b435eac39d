from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("storage", "0010_connections")]

    operations = [
        migrations.AddField(
            model_name="volume",
            name="adoption",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=9, verbose_name="adoption"
            ),
        ),
        migrations.AddField(
            model_name="volume",
            name="inspection",
            field=models.JSONField(null=True, verbose_name="inspection"),
        ),
        migrations.AddField(
            model_name="filessession",
            name="inspects",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
