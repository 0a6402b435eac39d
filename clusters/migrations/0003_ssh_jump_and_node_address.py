from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0002_portal_exposure"),
    ]

    operations = [
        migrations.AddField(
            model_name="installation",
            name="ssh_jump_key",
            field=models.TextField(
                blank=True, default="", help_text="Private and encrypted; empty: not made, or a file's."
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="installation",
            name="ssh_jump_public_key",
            field=models.TextField(blank=True, default=""),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="cluster",
            name="node_address",
            field=models.CharField(
                blank=True,
                default="",
                help_text="For NodePort: a name or address at which people reach the nodes’ ports. Empty: each node’s own address.",
                max_length=253,
                verbose_name="address of the nodes",
            ),
            preserve_default=False,
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
    ]
