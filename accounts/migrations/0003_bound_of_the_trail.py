"""Prove, without blocking anybody, how late the entries of the audit trail are: `0004_trail_by_month` needs the proof.

The bound is the end of the next month, or of the month of the latest entry. Adding the constraint takes a lock for a
moment. Its validation reads the table while others write. Interrupted, the migration can run again.
"""

from django.db import migrations

BOUND = """
DO $$
DECLARE bound timestamptz;
BEGIN
    SELECT date_trunc('month', greatest(now() + interval '1 month', max(at)), 'UTC') INTO bound FROM accounts_auditentry;
    bound := ((bound AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
    SET LOCAL lock_timeout = '5s';
    ALTER TABLE accounts_auditentry DROP CONSTRAINT IF EXISTS audit_before;
    EXECUTE format('ALTER TABLE accounts_auditentry ADD CONSTRAINT audit_before CHECK (at < %L) NOT VALID', bound);
END $$
"""
VALIDATE = "ALTER TABLE accounts_auditentry VALIDATE CONSTRAINT audit_before"


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts", "0002_refused_input")]
    operations = [
        migrations.RunSQL(
            [BOUND, VALIDATE], "ALTER TABLE accounts_auditentry DROP CONSTRAINT IF EXISTS audit_before"
        )
    ]
