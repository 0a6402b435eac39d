"""Doctor's finding about the accounts by which parts of Berth reach their database (`portal/management/rights.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.db import connection
from django.utils.translation import gettext as _

from clusters.api import Api
from clusters.doctor import Check, Finding, Level
from clusters.models import Cluster

# Accounts by which parts (`portal.environment.session_name`) are connected, and that may do all that the tables' owner
# may. Somebody who takes a backup, or migrates, has to be the owner.
OWNERS = """
SELECT DISTINCT usename FROM pg_stat_activity
JOIN pg_roles ON rolname = usename
JOIN pg_class ON relname = 'django_migrations' AND relnamespace = current_schema()::regnamespace
WHERE datname = current_database() AND starts_with(application_name, 'berth ')
AND (usesysid = relowner OR NOT rolsuper AND pg_has_role(usesysid, relowner, 'MEMBER'))
ORDER BY 1
"""


def findings(_cluster: Cluster, _api: Api) -> Iterator[Finding]:
    """Warn, outside of a trial, if parts of Berth connect as the owner of the tables."""
    if settings.TRIAL:
        return
    with connection.cursor() as cursor:
        cursor.execute(OWNERS)
        owners = ", ".join(account for (account,) in cursor.fetchall())
    if owners:
        message = _("Parts of Berth use the database account that owns all tables: %(accounts)s.") % {
            "accounts": owners
        }
        hint = _("Give each part an account of its own: docs/operator/power.md, “Accounts of the database”.")
        yield Finding(Level.WARN, message, hint, Check.RIGHTS)
    else:
        message = _("Each part of Berth uses a database account of its own.")
        yield Finding(Level.OK, message, check=Check.RIGHTS)
