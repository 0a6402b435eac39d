from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("quotas", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="pool",
            name="is_open",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="Out of use, nothing new starts here; what runs goes on, and what waits goes on waiting.",
                verbose_name="in use",
            ),
        ),
        migrations.AlterField(
            model_name="quota",
            name="borrowing_limit_gpus",
            field=models.PositiveIntegerField(
                default=0,
                help_text="GPUs beyond its own, while others leave them free. Not yet lent: its own are the limit.",
                verbose_name="may borrow",
            ),
        ),
        migrations.AlterField(
            model_name="quota",
            name="nominal_gpus",
            field=models.PositiveIntegerField(
                default=0,
                help_text="Whole GPUs that the tenant may use of this pool at once.",
                verbose_name="own GPUs",
            ),
        ),
        migrations.AlterField(
            model_name="tenantlimit",
            name="cpu_millicores",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="1000 are one core. Empty: no limit.",
                null=True,
                verbose_name="CPU (millicores)",
            ),
        ),
        migrations.AlterField(
            model_name="tenantlimit",
            name="memory_mib",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="1024 are one GiB. Empty: no limit.",
                null=True,
                verbose_name="memory (MiB)",
            ),
        ),
        migrations.AlterField(
            model_name="tenantlimit",
            name="workspaces",
            field=models.PositiveIntegerField(
                blank=True, help_text="Empty: no limit.", null=True, verbose_name="workspaces at once"
            ),
        ),
    ]
