"""Statements that PostgreSQL refuses to the account of a part."""

from __future__ import annotations

import psycopg
import pytest

from portal.channel_layer import connection_parameters
from portal.management.rights import account_of

# What no part may do.
CLOSED = (
    "CREATE TABLE mine (id int)",
    "CREATE TEMPORARY TABLE accounts_auditentry (id int)",
    "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "ALTER TABLE accounts_user ADD mine int",
    "ALTER TABLE accounts_auditentry DISABLE TRIGGER ALL",
    "DROP TABLE accounts_notice",
    "TRUNCATE accounts_notice",
    "UPDATE accounts_auditentry SET action = 'other'",
    "DELETE FROM accounts_auditentry",
    "SELECT * FROM accounts_auditentry_first",
    "UPDATE storage_storagespan SET mib = 0",
    "INSERT INTO django_migrations (app, name, applied) VALUES ('accounts', '0099', now())",
    "SET ROLE berth",
    "SET SESSION AUTHORIZATION postgres",
    "ALTER TABLE accounts_user OWNER TO berth_web",
    "COPY accounts_notice TO PROGRAM 'true'",
    "SELECT pg_read_file('/etc/passwd')",
)
CLOSED_TO = {
    "web": (
        "SELECT accounts_trail_drop_before(now())",
        "SELECT workloads_logs_drop_days(ARRAY[current_date])",
        "UPDATE django_q_ormq SET payload = ''",
        "DELETE FROM django_q_ormq",
        "SELECT * FROM django_q_task",
        "UPDATE quotas_ledgerentry SET units = 0",
        "UPDATE clusters_watcher SET seen_at = now()",
        "UPDATE django_admin_log SET change_message = ''",
        "DELETE FROM workloads_logchunk",
        "UPDATE workloads_logstream SET lines = 0",
        "DELETE FROM monitoring_figure",
    ),
    "worker": (
        "SELECT workloads_logs_drop_days(ARRAY[current_date])",
        "SELECT * FROM account_emailaddress",
        "INSERT INTO accounts_apitoken DEFAULT VALUES",
        "UPDATE django_session SET session_data = ''",
        "DELETE FROM workloads_logchunk",
    ),
    "watcher": (
        "SELECT accounts_trail_drop_before(now())",
        "SELECT * FROM mfa_authenticator",
        "INSERT INTO accounts_apitoken DEFAULT VALUES",
        "UPDATE django_q_ormq SET payload = ''",
    ),
    "collector": (
        "SELECT accounts_trail_drop_before(now())",
        "SELECT * FROM accounts_auditentry",
        "SELECT * FROM accounts_user",
        "SELECT * FROM django_session",
        "SELECT * FROM workspaces_workspacesecret",
        "INSERT INTO django_q_ormq DEFAULT VALUES",
        "UPDATE workspaces_workspace SET phase = 'ready'",
    ),
    "ssh-jump": (
        "SELECT accounts_trail_drop_before(now())",
        "SELECT * FROM accounts_apitoken",
        "SELECT * FROM django_session",
        "SELECT * FROM mfa_authenticator",
        "SELECT * FROM quotas_ledgerentry",
        "SELECT * FROM workloads_logchunk",
        "UPDATE accounts_user SET is_staff = true",
        "UPDATE workspaces_workspace SET phase = 'ready'",
    ),
}


def try_all(part: str) -> int:
    """Send each statement with the part's account; fail if one is not refused. Return how many were tried."""
    account = {**connection_parameters(), "user": account_of("berth", part)}
    with psycopg.connect(**account, autocommit=True) as other:
        for statement in (*CLOSED, *CLOSED_TO[part]):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                other.execute(statement)
                pytest.fail(f"{part}: {statement}")
    return len(CLOSED + CLOSED_TO[part])
