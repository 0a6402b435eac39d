"""Functions that change the days of the logs. They act as the tables' owner, for the collector, whose account owns none.

The search path is the tables' schema and nothing before it, so that no caller's own table is taken for one of these.
"""

from django.db import migrations

MADE = """
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
CREATE FUNCTION workloads_logs_make_day(day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    name text := to_char(day, '"workloads_logchunk_"YYYY_MM_DD');
BEGIN
    EXECUTE format('CREATE TABLE %I (LIKE workloads_logchunk INCLUDING DEFAULTS INCLUDING STORAGE)', name);
    EXECUTE format(
        'ALTER TABLE workloads_logchunk ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, day, day + 1
    );
END $$;
REVOKE ALL ON FUNCTION workloads_logs_make_day FROM PUBLIC;
CREATE FUNCTION workloads_logs_drop_days(days date[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    day date;
BEGIN
    FOREACH day IN ARRAY days LOOP
        EXECUTE format('DROP TABLE IF EXISTS %I', to_char(day, '"workloads_logchunk_"YYYY_MM_DD'));
    END LOOP;
END $$;
REVOKE ALL ON FUNCTION workloads_logs_drop_days FROM PUBLIC;
-- CLUSTER and not VACUUM, which no function can run. Both write a table anew, without the space of deleted rows.
CREATE FUNCTION workloads_logs_rewrite_day(day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    name regclass := to_char(day, '"workloads_logchunk_"YYYY_MM_DD');
BEGIN
    EXECUTE format(
        'CLUSTER %s USING %I', name,
        (SELECT relname FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indrelid = name AND indisprimary)
    );
    EXECUTE format('ANALYZE %s', name);
END $$;
REVOKE ALL ON FUNCTION workloads_logs_rewrite_day FROM PUBLIC;
"""
GONE = """
DROP FUNCTION workloads_logs_make_day;
DROP FUNCTION workloads_logs_drop_days;
DROP FUNCTION workloads_logs_rewrite_day;
"""


class Migration(migrations.Migration):
    dependencies = [("workloads", "0001_initial")]
    operations = [migrations.RunSQL(MADE, GONE)]
