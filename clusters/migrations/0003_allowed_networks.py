import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0002_refused_input"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="allowed_cidrs",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=253),
                blank=True,
                db_default=[],
                default=list,
                help_text="Such as those of a package mirror, a git server or the proxy. All other private networks are denied.",
                size=None,
                verbose_name="private networks that workspaces may reach",
            ),
        ),
    ]
