import django.core.validators
from django.db import migrations, models

import accounts.text


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
    ]

    operations = [
        migrations.AlterField(
            model_name="tenant",
            name="name",
            field=models.CharField(max_length=120, validators=[accounts.text.visible], verbose_name="name"),
        ),
        migrations.AlterField(
            model_name="tenant",
            name="slug",
            field=models.CharField(
                max_length=40,
                unique=True,
                validators=[
                    django.core.validators.RegexValidator(
                        "^(?!kube-)(?!(?:agent|system|default|public)$)[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?\\Z",
                        "Use 1 to 40 small letters, digits and dashes; not agent, system, default, public or kube-…",
                    )
                ],
                verbose_name="slug",
            ),
        ),
    ]
