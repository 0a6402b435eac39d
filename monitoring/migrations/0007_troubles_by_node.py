from django.db import migrations, models


class Migration(migrations.Migration):
    """A GPU may be moved to another node, and a pod with its volume: each node's trouble is its own."""

    dependencies = [
        ("monitoring", "0006_failed_starts"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="trouble", name="one_open_trouble_of_a_kind"),
        migrations.AddConstraint(
            model_name="trouble",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at__isnull", True)),
                fields=("cluster", "node", "about", "subject", "code"),
                name="one_open_trouble_of_a_node",
            ),
        ),
    ]
