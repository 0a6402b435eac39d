import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("quotas", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
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
            model_name="claim",
            name="admitted_at",
            field=models.DateTimeField(null=True, verbose_name="admitted at"),
        ),
        migrations.AlterField(
            model_name="claim",
            name="attempt",
            field=models.PositiveSmallIntegerField(
                default=0, help_text="How often it was sent back to the queue.", verbose_name="attempt"
            ),
        ),
        migrations.AlterField(
            model_name="claim",
            name="cpu_millicores",
            field=models.PositiveIntegerField(
                help_text="What the pod requests, after overcommit.", verbose_name="CPU (millicores)"
            ),
        ),
        migrations.AlterField(
            model_name="claim",
            name="created_at",
            field=models.DateTimeField(auto_now_add=True, verbose_name="created at"),
        ),
        migrations.AlterField(
            model_name="claim",
            name="end_unproven_since",
            field=models.DateTimeField(null=True, verbose_name="end unproven since"),
        ),
        migrations.AlterField(
            model_name="claim",
            name="memory_mib",
            field=models.PositiveIntegerField(
                help_text="What the pod requests, after overcommit.", verbose_name="memory (MiB)"
            ),
        ),
        migrations.AlterField(
            model_name="claim",
            name="node",
            field=models.CharField(
                blank=True, help_text="Chosen at admission.", max_length=253, verbose_name="node"
            ),
        ),
        migrations.AlterField(
            model_name="claim",
            name="pool",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="claims",
                to="quotas.pool",
                verbose_name="pool",
            ),
        ),
        migrations.AlterField(
            model_name="claim",
            name="priority",
            field=models.SmallIntegerField(default=0, verbose_name="priority"),
        ),
        migrations.AlterField(
            model_name="claim",
            name="released_at",
            field=models.DateTimeField(null=True, verbose_name="released at"),
        ),
        migrations.AlterField(
            model_name="claim",
            name="state",
            field=models.CharField(
                choices=[("waiting", "waiting"), ("admitted", "admitted"), ("released", "released")],
                default="waiting",
                max_length=8,
                verbose_name="state",
            ),
        ),
        migrations.AlterField(
            model_name="claim",
            name="tenant",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="claims",
                to="accounts.tenant",
                verbose_name="tenant",
            ),
        ),
        migrations.AlterField(
            model_name="claim",
            name="units",
            field=models.PositiveIntegerField(verbose_name="units"),
        ),
        migrations.AlterField(
            model_name="claim",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="claims",
                to=settings.AUTH_USER_MODEL,
                verbose_name="user",
            ),
        ),
        migrations.AlterField(
            model_name="flavor",
            name="pool",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="flavors",
                to="quotas.pool",
                verbose_name="pool",
            ),
        ),
        migrations.AlterField(
            model_name="pool",
            name="cluster",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="pools",
                to="clusters.cluster",
                verbose_name="cluster",
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
            model_name="quota",
            name="pool",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="quotas",
                to="quotas.pool",
                verbose_name="pool",
            ),
        ),
        migrations.AlterField(
            model_name="quota",
            name="tenant",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="quotas",
                to="accounts.tenant",
                verbose_name="tenant",
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
            name="tenant",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="limit",
                to="accounts.tenant",
                verbose_name="tenant",
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
