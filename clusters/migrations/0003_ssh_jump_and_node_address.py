from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0002_portal_exposure"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="node_address",
            field=models.CharField(
                blank=True,
                help_text="For NodePort: a name or address at which people reach the nodes’ ports. Empty: each node’s own address.",
                max_length=253,
                verbose_name="address of the nodes",
            ),
        ),
        migrations.AddField(
            model_name="installation",
            name="ssh_jump_key",
            field=models.TextField(
                blank=True, help_text="Private and encrypted; empty: not made, or a file's."
            ),
        ),
        migrations.AddField(
            model_name="installation",
            name="ssh_jump_public_key",
            field=models.TextField(blank=True),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="exposure",
            field=models.CharField(
                choices=[
                    ("load-balancer", "an address of its own per workspace (LoadBalancer)"),
                    ("node-port", "SSH at a port of the nodes (NodePort), Jupyter through Berth"),
                    ("portal", "all through Berth (ClusterIP)"),
                ],
                default="load-balancer",
                max_length=16,
                verbose_name="exposure",
            ),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="unreachable_reason",
            field=models.TextField(blank=True, editable=False, verbose_name="unreachable reason"),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="unreachable_since",
            field=models.DateTimeField(editable=False, null=True, verbose_name="unreachable since"),
        ),
        migrations.AlterField(
            model_name="unknowncause",
            name="count",
            field=models.PositiveIntegerField(default=1, verbose_name="count"),
        ),
        migrations.AlterField(
            model_name="unknowncause",
            name="first_at",
            field=models.DateTimeField(auto_now_add=True, verbose_name="first at"),
        ),
        migrations.AlterField(
            model_name="unknowncause",
            name="last_at",
            field=models.DateTimeField(auto_now=True, verbose_name="last at"),
        ),
        migrations.AlterField(
            model_name="unknowncause",
            name="source",
            field=models.CharField(max_length=32, verbose_name="source"),
        ),
        migrations.AlterField(
            model_name="unknowncause",
            name="text",
            field=models.TextField(verbose_name="text"),
        ),
    ]
