"""Functions that change the months of the audit trail, and triggers that let it forget whom its entries point to.

They act as the tables' owner: no part's account may change an entry, and none owns a table.

The search path is the tables' schema and nothing before it, so that no caller's own table is taken for one of these.

Who took over the worker may call them, too: so they never drop the newest entries, say what they dropped, and make no
months but the next ones.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

MAKE = """
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
CREATE FUNCTION accounts_trail_make_months(this_month timestamptz, ahead integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE
    wanted timestamptz := this_month + make_interval(months => ahead + 1);
    since timestamptz := substring(
        pg_get_expr(relpartbound, oid) FROM $re$FROM \\('([^']+)'\\)$re$
    )::timestamptz FROM pg_class WHERE oid = 'accounts_auditentry_last'::regclass;
    until timestamptz := GREATEST(since, this_month + interval '1 month');
    month timestamptz := until;
BEGIN
    IF (
        ahead BETWEEN 0 AND 24 AND this_month < now() + interval '2 months'
        AND this_month = date_trunc('month', this_month)
    ) IS NOT TRUE THEN
        RAISE EXCEPTION 'no months of the audit trail are made from % on', this_month USING ERRCODE = 'check_violation';
    END IF;
    IF since >= wanted THEN
        RETURN;
    END IF;
    -- In the order of accounts/locks.py: attaching a table changes those that its foreign keys name.
    LOCK TABLE accounts_user, accounts_tenant, accounts_auditentry IN ACCESS EXCLUSIVE MODE;
    ALTER TABLE accounts_auditentry DETACH PARTITION accounts_auditentry_last;
    ALTER TABLE accounts_auditentry_last RENAME TO accounts_auditentry_filled;
    WHILE month < wanted LOOP
        EXECUTE format(
            'CREATE TABLE %I PARTITION OF accounts_auditentry (PRIMARY KEY (id)) FOR VALUES FROM (%L) TO (%L)',
            to_char(month, '"accounts_auditentry_"YYYY_MM'), month, month + interval '1 month'
        );
        month := month + interval '1 month';
    END LOOP;
    EXECUTE format(
        'CREATE TABLE accounts_auditentry_last PARTITION OF accounts_auditentry (PRIMARY KEY (id)) '
        'FOR VALUES FROM (%L) TO (MAXVALUE)', month
    );
    EXECUTE format(
        'WITH fast AS (DELETE FROM accounts_auditentry_filled WHERE at >= %L RETURNING *) '
        'INSERT INTO accounts_auditentry SELECT * FROM fast', until
    );
    IF since < until THEN
        EXECUTE format(
            'ALTER TABLE accounts_auditentry_filled RENAME TO %I', to_char(since, '"accounts_auditentry_"YYYY_MM')
        );
        EXECUTE format(
            'ALTER TABLE accounts_auditentry ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
            to_char(since, '"accounts_auditentry_"YYYY_MM'), since, until
        );
    ELSE
        DROP TABLE accounts_auditentry_filled;
    END IF;
END $$;
REVOKE ALL ON FUNCTION accounts_trail_make_months FROM PUBLIC;
"""
DROP = """
CREATE FUNCTION accounts_trail_drop_before(moment timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE
    old record;
    kept interval;
    kept_from timestamptz;
    entries bigint;
    told jsonb[] := '{}';
BEGIN
    -- A month at least is kept. The shortest has 28 days, and a caller's clock may be a little fast.
    IF (moment <= now() - interval '27 days') IS NOT TRUE THEN
        RAISE EXCEPTION 'the audit trail from % on is kept', moment USING ERRCODE = 'check_violation';
    END IF;
    kept := age(date_trunc('month', now()), moment);
    LOCK TABLE accounts_user, accounts_tenant, accounts_auditentry IN ACCESS EXCLUSIVE MODE;
    FOR old IN
        SELECT name, substring(bounds FROM $re$FROM \\('([^']+)'\\)$re$)::timestamptz AS since, until
        FROM (
            SELECT child.relname AS name, pg_get_expr(child.relpartbound, child.oid) AS bounds,
            substring(
                pg_get_expr(child.relpartbound, child.oid) FROM $re$TO \\('([^']+)'\\)$re$
            )::timestamptz AS until
            FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
            WHERE inhparent = 'accounts_auditentry'::regclass
        ) AS partitions
        WHERE until <= moment ORDER BY until
    LOOP
        kept_from := old.until;
        EXECUTE format('SELECT count(*) FROM %I', old.name) INTO entries;
        EXECUTE format('DROP TABLE %I', old.name);
        IF entries > 0 THEN
            told := told || jsonb_build_object(
                'since', to_char(old.since, 'YYYY-MM-DD'), 'until', to_char(old.until, 'YYYY-MM-DD'),
                'entries', entries, 'months', extract(year FROM kept) * 12 + extract(month FROM kept)
            );
        END IF;
    END LOOP;
    IF kept_from IS NULL THEN
        RETURN;
    END IF;
    EXECUTE format(
        'CREATE TABLE accounts_auditentry_first PARTITION OF accounts_auditentry (PRIMARY KEY (id)) '
        'FOR VALUES FROM (MINVALUE) TO (%L)', kept_from
    );
    INSERT INTO accounts_auditentry (at, actor_name, action, outcome, target_kind, target_id, data)
    SELECT clock_timestamp(), '', 'trail.forgotten', 'done', '', '', data FROM unnest(told) AS data;
END $$;
REVOKE ALL ON FUNCTION accounts_trail_drop_before FROM PUBLIC;
"""
FORGET = """
CREATE FUNCTION accounts_trail_forget() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    EXECUTE format('UPDATE accounts_auditentry SET %1$I = NULL WHERE %1$I = $1', TG_ARGV[0]) USING OLD.id;
    RETURN OLD;
END $$;
CREATE TRIGGER accounts_trail_forget BEFORE DELETE ON accounts_user
FOR EACH ROW EXECUTE FUNCTION accounts_trail_forget('actor_id');
CREATE TRIGGER accounts_trail_forget BEFORE DELETE ON accounts_tenant
FOR EACH ROW EXECUTE FUNCTION accounts_trail_forget('tenant_id');
"""
GONE = """
DROP TRIGGER accounts_trail_forget ON accounts_user;
DROP TRIGGER accounts_trail_forget ON accounts_tenant;
DROP FUNCTION accounts_trail_forget;
DROP FUNCTION accounts_trail_make_months;
DROP FUNCTION accounts_trail_drop_before;
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0007_notice_age")]
    operations = [
        migrations.RunSQL(
            MAKE + DROP + FORGET,
            GONE,
            state_operations=[
                migrations.AlterField(
                    model_name="auditentry",
                    name="actor",
                    field=models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                migrations.AlterField(
                    model_name="auditentry",
                    name="tenant",
                    field=models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
        )
    ]
