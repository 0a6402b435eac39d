from django.db import migrations, models

import accounts.text
import clusters.references


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0001_initial"),
    ]

    operations = [
        migrations.AlterField(
            model_name="cluster",
            name="name",
            field=models.CharField(max_length=120, validators=[accounts.text.visible], verbose_name="name"),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="validation_image",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="It adds two vectors with CUDA and prints “Test PASSED”, as NVIDIA's sample cuda-sample:vectoradd does.",
                max_length=512,
                validators=[clusters.references.valid_reference],
                verbose_name="image that tests GPUs",
            ),
        ),
    ]
