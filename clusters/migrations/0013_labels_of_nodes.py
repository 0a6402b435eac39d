import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0012_room_beside_gpus"),
    ]

    operations = [
        migrations.AlterField(
            model_name="node",
            name="cluster",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="nodes",
                to="clusters.cluster",
                verbose_name="cluster",
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="name",
            field=models.CharField(max_length=253, verbose_name="name"),
        ),
    ]
