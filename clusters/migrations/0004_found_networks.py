import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0003_allowed_networks"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="found_networks",
            field=models.JSONField(db_default={}, default=dict, editable=False),
        ),
        migrations.AddField(
            model_name="cluster",
            name="networks_found_at",
            field=models.DateTimeField(editable=False, null=True, verbose_name="networks found at"),
        ),
        migrations.AddField(
            model_name="cluster",
            name="without_isolation",
            field=models.BooleanField(
                db_default=False, default=False, editable=False, verbose_name="run without isolation"
            ),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="pod_cidrs",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=253),
                blank=True,
                default=list,
                help_text="Only what Berth does not find by itself, here and in the next two fields.",
                size=None,
                verbose_name="pod networks",
            ),
        ),
    ]
