"""The buckets of accounts.rest.rates. Unlogged: a count is not worth a write to disk, and none is missed after a crash."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_profiles_notices_and_groups")]

    operations = [
        migrations.RunSQL(
            "CREATE UNLOGGED TABLE accounts_rate (bucket text PRIMARY KEY, empty_at timestamptz NOT NULL)"
            " WITH (fillfactor = 50)",
            "DROP TABLE accounts_rate",
        )
    ]
