from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0013_host_keys_of_names"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField("workspace", "apps", models.JSONField(db_default=[], default=list)),
        migrations.AddField(
            "gatewaypass",
            "port",
            models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            "gatewaypass",
            "user",
            models.ForeignKey(
                null=True,
                on_delete=models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
