import django.core.validators
from django.db import migrations, models

import accounts.text


class Migration(migrations.Migration):
    dependencies = [
        ("quotas", "0001_initial"),
    ]

    operations = [
        migrations.AlterField(
            model_name="flavor",
            name="cpu_millicores",
            field=models.PositiveIntegerField(
                validators=[django.core.validators.MinValueValidator(100)], verbose_name="CPU (millicores)"
            ),
        ),
        migrations.AlterField(
            model_name="flavor",
            name="memory_mib",
            field=models.PositiveIntegerField(
                validators=[django.core.validators.MinValueValidator(128)], verbose_name="memory (MiB)"
            ),
        ),
        migrations.AlterField(
            model_name="flavor",
            name="name",
            field=models.CharField(max_length=120, validators=[accounts.text.visible], verbose_name="name"),
        ),
        migrations.AlterField(
            model_name="pool",
            name="name",
            field=models.CharField(max_length=120, validators=[accounts.text.visible], verbose_name="name"),
        ),
    ]
