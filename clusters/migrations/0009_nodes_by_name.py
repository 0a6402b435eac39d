from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0008_validation_image"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="node",
            options={"ordering": ["name"], "verbose_name": "node", "verbose_name_plural": "nodes"},
        ),
    ]
