"""Let the ledger of storage be written by its trigger alone: it acts as the tables' owner, whoever changes a volume."""

from django.db import migrations

BY_OWNER = """
DO $$ BEGIN
    EXECUTE format(
        'ALTER FUNCTION storage_span_follow() SECURITY DEFINER SET search_path = %I, pg_temp', current_schema()
    );
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("storage", "0001_initial")]
    operations = [
        migrations.RunSQL(BY_OWNER, "ALTER FUNCTION storage_span_follow() SECURITY INVOKER RESET search_path")
    ]
