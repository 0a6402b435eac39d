"""Firings of what is wrong with Berth itself: queues that stand still, watches, mail, clusters, tokens."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db.models import Min, Q
from django.urls import reverse
from django.utils import timezone

from accounts.directory.models import DirectorySync
from accounts.notices.models import Notice
from accounts.notices.preferences import mail_is_configured
from clusters.connections import ends_of_credentials
from clusters.models import Cluster, Watcher
from monitoring.alerts.firing import Firing
from monitoring.models import AgentToken, AlertMember, AlertPass, Severity
from quotas.models import Claim, Pool

UNREACHABLE_AFTER = timedelta(seconds=60)
WATCH_SILENT_AFTER = timedelta(minutes=2)
MAIL_LATE_AFTER = timedelta(minutes=10)
GIVEN_UP_WITHIN = timedelta(days=1)
PASS_LATE_AFTER = timedelta(minutes=2)
UNUSED_AFTER = timedelta(days=30)
ENDS_WITHIN = timedelta(days=21)
ENDS_SOON = timedelta(days=7)
SYNC_LATE_AFTER = timedelta(hours=26)
SITE_SECONDS = 10
CERTIFICATE_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED


def firings() -> Iterable[Firing]:
    now = timezone.now()
    yield from unreachable(now)
    yield from watches(now)
    yield from queues(now)
    yield from mail(now)
    yield from credentials(now)
    yield from unused_tokens(now)
    yield from directory(now)


def unreachable(now: datetime) -> Iterator[Firing]:
    for cluster in Cluster.objects.filter(unreachable_since__lte=now - UNREACHABLE_AFTER):
        yield Firing(
            key=str(cluster.pk),
            code="cluster_unreachable",
            data={"cluster": cluster.name, "raw": cluster.unreachable_reason[:300]},
            severity=Severity.CRITICAL,
            since=cluster.unreachable_since or now,
            cluster_id=cluster.pk,
            link=reverse("admin:clusters_cluster_change", args=[cluster.pk]),
        )


def watches(now: datetime) -> Iterator[Firing]:
    """Yield kinds of objects of which nothing is heard, though the cluster answers and a watcher works. After an outage
    of the cluster, its watches have as long again to be heard."""
    if not Watcher.objects.filter(seen_at__gt=now - WATCH_SILENT_AFTER).exists():
        return  # the watcher itself is silent, which another source tells
    late = Watcher.objects.filter(seen_at__lte=now - WATCH_SILENT_AFTER, cluster__unreachable_since=None)
    recently = Q(ended_at=None) | Q(ended_at__gt=now - WATCH_SILENT_AFTER)
    away = AlertMember.objects.filter(recently, code="cluster_unreachable", alert__cluster__isnull=False)
    for row in late.exclude(cluster__in=away.values("alert__cluster")).select_related("cluster"):
        yield Firing(
            key=f"watch/{row.cluster_id}/{row.kind}",
            code="watch_silent",
            data={"kind": row.kind},
            since=row.seen_at,
            severity=Severity.CRITICAL,
            cluster_id=row.cluster_id,
            name=row.kind,
        )


def queues(now: datetime) -> Iterator[Firing]:
    """Yield pools with a queue over which no pass has come to its end: each writes `forecast_at` last."""
    late = now - PASS_LATE_AFTER
    waiting = Claim.objects.filter(state=Claim.State.WAITING, created_at__lte=late).order_by().values("pool")
    stuck = Pool.objects.filter(pk__in=waiting, cluster__unreachable_since=None)
    for pool in stuck.filter(Q(forecast_at=None) | Q(forecast_at__lte=late)):
        yield Firing(
            key=f"queue/{pool.pk}",
            code="queue_stands_still",
            data={"pool": pool.slug},
            since=pool.forecast_at or late,
            severity=Severity.CRITICAL,
            cluster_id=pool.cluster_id,
            name=pool.slug,
            pool_ids=(pool.pk,),
        )


def mail(now: datetime) -> Iterator[Firing]:
    """Yield mail and messages that wait for long, or were given up within a day."""
    link = reverse("admin:accounts_notice_changelist")
    waiting = (
        Notice.objects.filter(mail=Notice.Mail.WAITING) if mail_is_configured() else Notice.objects.none()
    )
    first = waiting.aggregate(at=Min("at"))["at"]
    if first and now - first > MAIL_LATE_AFTER:
        minutes = {"minutes": int((now - first).total_seconds() // 600) * 10}
        yield Firing(key="mail/stuck", code="mail_stuck", data=minutes, since=first, link=link)
    recently = now - GIVEN_UP_WITHIN
    lost = Notice.objects.filter(mail=Notice.Mail.GIVEN_UP, mail_settled_at__gt=recently)
    if (at := lost.aggregate(at=Min("mail_settled_at"))["at"]) is not None:
        yield Firing(key="mail/given_up", code="mail_given_up", since=at, link=link)


def credentials(now: datetime) -> Iterator[Firing]:
    """Yield certificates and tokens that end soon: those of kubeconfigs, and the one of Berth's own address."""
    found: list[tuple[str, str, datetime, UUID | None]] = [
        (f"{cluster.pk}/{what}", f"{what} ({cluster.name})", ends_at, cluster.pk)
        for cluster in Cluster.objects.all()
        for what, ends_at in ends_of_credentials(cluster)
    ]
    ends = AlertPass.objects.exclude(site_ends_at=None).values_list("site_ends_at", flat=True)
    found += [("site", f"TLS ({settings.BASE_URL})", ends_at or now, None) for ends_at in ends]
    for key, what, ends_at, cluster_id in found:
        if ends_at - now < ENDS_WITHIN:
            yield Firing(
                key=f"credential/{key}",
                code="credential_ends",
                data={"what": what, "date": ends_at.date().isoformat()},
                severity=Severity.CRITICAL if ends_at - now < ENDS_SOON else Severity.WARNING,
                since=max(ends_at - ENDS_WITHIN, now - timedelta(days=1)),
                cluster_id=cluster_id,
                name=what,
                apart=key,
            )


def unused_tokens(now: datetime) -> Iterator[Firing]:
    """Yield agents' tokens that nobody uses: each is a way in that nobody would miss."""
    usable = AgentToken.objects.filter(revoked_at=None, created_at__lte=now - UNUSED_AFTER)
    for token in usable.filter(Q(last_used_at=None) | Q(last_used_at__lte=now - UNUSED_AFTER)):
        yield Firing(
            key=f"agent_token/{token.pk}",
            code="agent_token_unused",
            data={"name": token.name, "days": UNUSED_AFTER.days},
            severity=Severity.INFO,
            since=(token.last_used_at or token.created_at) + UNUSED_AFTER,
            cluster_id=token.cluster_id,
            name=token.name,
            link=reverse("admin:monitoring_agenttoken_change", args=[token.pk]),
        )


def directory(now: datetime) -> Iterator[Firing]:
    """Yield a sync with the LDAP directory that was held back, or that has failed for more than a day."""
    row = DirectorySync.objects.filter(pk=1).first() if settings.LDAP is not None else None
    if row is None:
        return
    if row.outcome == DirectorySync.Outcome.HELD_BACK:
        yield Firing(
            key="directory/held_back",
            code="directory_held_back",
            data={"leaving": row.leaving, "people": row.people},
            severity=Severity.CRITICAL,
            since=row.tried_at,
        )
    elif now - (row.done_at or row.began_at) > SYNC_LATE_AFTER:  # however the last try ended
        since = (row.done_at or row.began_at) + SYNC_LATE_AFTER
        yield Firing(key="directory/late", code="directory_late", severity=Severity.WARNING, since=since)


def look_at_site() -> None:
    """Note when the certificate of Berth's own address ends, as people meet it. What cannot be read says nothing."""
    AlertPass.objects.filter(pk=1).update(site_ends_at=_end_of_site())


def _end_of_site() -> datetime | None:
    parts = urlsplit(settings.BASE_URL)
    if parts.scheme != "https" or not parts.hostname:
        return None
    context = ssl.create_default_context()
    try:
        address = (parts.hostname, parts.port or 443)
        with (
            socket.create_connection(address, timeout=SITE_SECONDS) as raw,
            context.wrap_socket(raw, server_hostname=parts.hostname) as connection,
        ):
            told = connection.getpeercert() or {}
    except ssl.SSLCertVerificationError as error:
        return timezone.now() if error.verify_code == CERTIFICATE_EXPIRED else None
    except OSError:
        return None
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(told["notAfter"])), UTC)
