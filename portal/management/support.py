"""Support bundle: what helps somebody else to find a fault, as a zip file that names no person and holds no secret.

Of settings, only short numbers and switches are shown; of all others, that they are set. Of rows, only counts, codes
and times are written. What doctor finds names nodes, GPUs, storage classes and addresses of a cluster.
"""

from __future__ import annotations

import json
import os
import platform
import re
import zipfile
from collections.abc import Callable
from importlib.metadata import distributions
from typing import IO, Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, Max, Min
from django.utils import timezone

from clusters.doctor import keeping
from clusters.errors import ClusterUnavailable
from clusters.models import Cluster
from monitoring.models import Alert, Finding, PostMortem, Trouble
from portal.metrics import exposition
from vitals.models import Process

# Of these no value is shown, whatever it looks like: a password may be a number.
SECRET = re.compile("PASSWORD|SECRET|TOKEN|KEY|REGISTRY|KUBECONFIG|URL")
SHOWN = re.compile(r"-?\d{1,9}(\.\d{1,6})?|true|false|yes|no|", re.IGNORECASE)
TABLES = """
SELECT c.relname AS name, greatest(c.reltuples, 0)::bigint AS about_rows, pg_total_relation_size(c.oid) AS bytes,
       s.n_dead_tup AS dead_rows, s.last_autovacuum
FROM pg_class c LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' ORDER BY 3 DESC LIMIT 60
"""
SESSIONS = """
SELECT state, wait_event_type, count(*), max(now() - state_change)::text AS longest
FROM pg_stat_activity WHERE datname = current_database() GROUP BY 1, 2 ORDER BY 3 DESC
"""
OPTIONS = """
SELECT name, setting FROM pg_settings
WHERE name IN ('server_version', 'server_encoding', 'max_connections', 'shared_buffers', 'synchronous_commit', 'fsync')
"""
TASKS = """
SELECT count(*), count(*) FILTER (WHERE lock > now()) AS taken, min(lock) AS first FROM django_q_ormq
"""

Rows = list[dict[str, Any]]


def write(file: IO[bytes]) -> list[str]:
    """Write the bundle; return the names of its members. A part that cannot be had says so in its place."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in PARTS.items():
            archive.writestr(name, _told(part))
        return archive.namelist()


def _told(part: Callable[[], Any]) -> bytes | str:
    try:
        told = part()
    except Exception as error:  # noqa: BLE001  # the others are wanted all the more
        told = {"not_there": type(error).__name__}
    return told if isinstance(told, bytes) else json.dumps(told, indent=1, default=str)


def versions() -> dict[str, Any]:
    return {
        "berth": settings.VERSION,
        "taken_at": timezone.now(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": dict(sorted((one.name, one.version) for one in distributions())),
        "trial": settings.TRIAL,
    }


def own_settings() -> dict[str, str]:
    names = (
        name for name in os.environ if name.startswith(("BERTH_", "DATABASE_URL", "FORWARDED_ALLOW_IPS"))
    )
    return {name: shown(name, os.environ[name]) for name in sorted(names)}


def shown(name: str, value: str) -> str:
    """Return a short number or a switch as it is; of any other value, and of secrets, only that there is one."""
    return value if SHOWN.fullmatch(value) and not SECRET.search(name) else "set"


def database() -> dict[str, Any]:
    return {
        "options": rows(OPTIONS),
        "tables": rows(TABLES),
        "sessions": rows(SESSIONS),
        "tasks": rows(TASKS),
        "migrations": rows("SELECT app, name, applied FROM django_migrations ORDER BY id"),
    }


def rows(query: str) -> Rows:
    with connection.cursor() as cursor:
        cursor.execute(query)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def parts() -> Rows:
    heard = Process.objects.order_by("part", "pk")
    return [dict(row) for row in heard.values("part", "pid", "since", "seen_at", "gauges")]


def clusters() -> Rows:
    return [
        {
            "cluster": cluster.slug,
            "connection": cluster.connection,
            "unreachable_since": cluster.unreachable_since,
            "doctor_at": cluster.doctor_at,
            "findings": findings_of(cluster),
        }
        for cluster in Cluster.objects.order_by("slug")
    ]


def findings_of(cluster: Cluster) -> Rows:
    try:
        found = keeping.examined(cluster)
    except ClusterUnavailable as error:
        found = keeping.unexamined(error)
    return [{"level": one.level, "check": one.check, "message": one.message} for one in found]


def faults() -> dict[str, Rows]:
    """Count by code what was wrong, and when it was so first and last."""
    return {
        "troubles": counted(Trouble.objects.values("about", "code", "takes_out"), "since"),
        "alerts": counted(Alert.objects.values("code"), "since"),
        "drift": counted(Finding.objects.values("what"), "first_seen_at"),
        "runs_that_failed": counted(PostMortem.objects.values("code"), "ended_at"),
    }


def counted(grouped: Any, time: str) -> Rows:
    return list(grouped.annotate(count=Count("pk"), first=Min(time), last=Max(time)).order_by("-count"))


PARTS: dict[str, Callable[[], Any]] = {
    "versions.json": versions,
    "settings.json": own_settings,
    "parts.json": parts,
    "database.json": database,
    "clusters.json": clusters,
    "faults.json": faults,
    "metrics.txt": exposition,
}
