import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0002_gateway_pass"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="lifetime_due_at",
            field=models.DateTimeField(db_index=True, null=True),
        ),
        migrations.AddField(
            model_name="workspace",
            name="max_runtime_minutes",
            field=models.PositiveIntegerField(help_text="Empty: it runs until stopped.", null=True),
        ),
        migrations.AddField(
            model_name="workspace",
            name="next_size",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="workspace",
            name="notify",
            field=models.BooleanField(
                db_default=True, default=True, help_text="Its person is told when it is ready, fails, stops."
            ),
        ),
        migrations.AddField(
            model_name="workspace",
            name="stops_at",
            field=models.DateTimeField(help_text="When the lifetime of the current run is over.", null=True),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="cpu_millicores",
            field=models.PositiveIntegerField(verbose_name="CPU (millicores)"),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="created_at",
            field=models.DateTimeField(auto_now_add=True, verbose_name="created at"),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="deleted_at",
            field=models.DateTimeField(null=True, verbose_name="deleted at"),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="desired",
            field=models.CharField(
                choices=[("running", "running"), ("stopped", "stopped"), ("deleted", "deleted")],
                default="running",
                max_length=8,
                verbose_name="desired",
            ),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="dirty_since",
            field=models.DateTimeField(db_index=True, null=True, verbose_name="dirty since"),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="disk_mib",
            field=models.PositiveIntegerField(
                default=0, help_text="A local disk beside the home; 0: none.", verbose_name="local disk (MiB)"
            ),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="flavor",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="quotas.flavor",
                verbose_name="flavor",
            ),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="image",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="workspaces.image",
                verbose_name="image",
            ),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="memory_mib",
            field=models.PositiveIntegerField(verbose_name="memory (MiB)"),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="node",
            field=models.CharField(blank=True, max_length=253, verbose_name="node"),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="owner",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="workspaces",
                to=settings.AUTH_USER_MODEL,
                verbose_name="owner",
            ),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="phase",
            field=models.CharField(
                choices=[
                    ("waiting", "waiting"),
                    ("starting", "starting"),
                    ("ready", "ready"),
                    ("stopping", "stopping"),
                    ("stopped", "stopped"),
                    ("failed", "failed"),
                    ("deleting", "deleting"),
                ],
                default="waiting",
                max_length=8,
                verbose_name="phase",
            ),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="pod_uid",
            field=models.CharField(blank=True, max_length=64, verbose_name="pod uid"),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="pool",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="quotas.pool",
                verbose_name="pool",
            ),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="ready_at",
            field=models.DateTimeField(null=True, verbose_name="ready at"),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="run",
            field=models.UUIDField(null=True, verbose_name="run"),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="started_at",
            field=models.DateTimeField(
                help_text="When the current run was admitted.", null=True, verbose_name="started at"
            ),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="step",
            field=models.CharField(
                choices=[
                    ("request", "Request"),
                    ("admission", "Admission"),
                    ("disk", "Disk"),
                    ("container", "Container"),
                    ("scheduled", "Scheduled"),
                    ("image", "Image"),
                    ("mounts", "Mounts"),
                    ("started", "Started"),
                    ("endpoint", "Endpoint"),
                    ("ready", "Ready"),
                ],
                default="request",
                help_text="Under way, or the last.",
                max_length=10,
                verbose_name="step",
            ),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="step_since",
            field=models.DateTimeField(verbose_name="step since"),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="tenant",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="workspaces",
                to="accounts.tenant",
                verbose_name="tenant",
            ),
        ),
        migrations.AlterField(
            model_name="workspace",
            name="units",
            field=models.PositiveIntegerField(default=0, verbose_name="units"),
        ),
    ]
