from django.db import migrations, models

import accounts.text
import clusters.references


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0002_jupyter_tokens"),
    ]

    operations = [
        migrations.AlterField(
            model_name="image",
            name="name",
            field=models.CharField(max_length=120, validators=[accounts.text.visible], verbose_name="name"),
        ),
        migrations.AlterField(
            model_name="image",
            name="reference",
            field=models.CharField(
                max_length=512,
                validators=[clusters.references.valid_reference],
                verbose_name="container reference",
            ),
        ),
    ]
