"""Every GPU's row is written anew with each report: with room beside it on its page, no index is touched for that, and
the table stays as small as it is."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0011_unknown_causes"),
    ]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE clusters_gpu SET (fillfactor = 50)",
            "ALTER TABLE clusters_gpu RESET (fillfactor)",
        ),
    ]
