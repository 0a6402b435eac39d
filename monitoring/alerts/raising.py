"""One pass over all that fires: open alerts, let firings join or leave them, resolve, escalate.

Level-triggered: a pass reads everything anew, so one that is lost, late or doubled does no harm. Passes run one after
another, by a lock that ends with their transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone

from accounts.live import publish
from accounts.locks import forget, one_at_a_time
from monitoring.alerts import deliveries, passes, sources
from monitoring.alerts.firing import Firing
from monitoring.alerts.grouping import SAME_WITHIN, Plan, Standing, plan
from monitoring.models import Alert, AlertMember, AlertRoute

KEPT = timedelta(days=90)
LIVE = "alerts"
State = Alert.State


@dataclass
class _Pass:
    """What one pass reads and changes."""

    now: datetime
    routes: Sequence[AlertRoute]
    alerts: dict[UUID, Alert]
    members: dict[UUID, dict[str, AlertMember]]
    touched: set[UUID] = field(default_factory=set)
    changed: list[AlertMember] = field(default_factory=list)
    added: list[AlertMember] = field(default_factory=list)


def look() -> None:
    """Make a pass. Then enqueue the sending of what is due."""
    passes.begins()  # outside of the transaction, which would lock the row for those who enqueue
    with transaction.atomic():
        one_at_a_time("monitoring.alerts")
        now = timezone.now()
        firings, failed = sources.read()
        deliveries.ensure_default()
        work = _read(now)
        wanted = plan(firings, list(_standing(work)), now, failed)
        _refresh(work, firings)
        _apply(work, wanted)
        _write(work)
        _pass_time(work)
        if work.touched:
            publish(LIVE, {"type": "alerts.changed"})
    forget(Alert.objects.filter(resolved_at__lt=now - KEPT))
    passes.want_sending()


def _read(now: datetime) -> _Pass:
    recently = Q(resolved_by=None, resolved_at__gt=now - SAME_WITHIN)
    holds = Exists(AlertMember.objects.filter(alert=OuterRef("pk"), ended_at=None))
    alerts = {alert.pk: alert for alert in Alert.objects.filter(Q(resolved_at=None) | recently | holds)}
    members: defaultdict[UUID, dict[str, AlertMember]] = defaultdict(dict)
    for member in AlertMember.objects.filter(alert__in=alerts):
        members[member.alert_id][member.key] = member
    return _Pass(now, deliveries.enabled(), alerts, members)


def _standing(work: _Pass) -> Iterable[Standing]:
    for alert in work.alerts.values():
        yield Standing(
            id=alert.pk,
            group=alert.group,
            last_at=alert.last_at,
            is_open=alert.state != State.RESOLVED,
            keys={key: member.ended_at for key, member in work.members[alert.pk].items()},
        )


def _refresh(work: _Pass, firings: Iterable[Firing]) -> None:
    """Take over what changed about members that go on firing: figures, severity."""
    found = {firing.key: firing for firing in firings}
    for members in work.members.values():
        for key, member in members.items():
            firing = found.get(key)
            if firing is None or member.ended_at is not None:
                continue
            known = (member.data, member.severity, member.link)
            if known != (dict(firing.data), firing.severity, firing.link):
                member.data, member.severity, member.link = dict(firing.data), firing.severity, firing.link
                work.changed.append(member)
                work.touched.add(member.alert_id)


def _apply(work: _Pass, wanted: Plan) -> None:
    for group in wanted.new:
        _open(work, group)
    for alert_id, firings in wanted.joining.items():
        _join(work, work.alerts[alert_id], firings)
    for alert_id, firings in wanted.again.items():
        for firing in firings:
            member = work.members[alert_id][firing.key]
            member.ended_at, member.since = None, firing.since
            member.data, member.severity, member.link = dict(firing.data), firing.severity, firing.link
            work.changed.append(member)
        work.touched.add(alert_id)
    for alert_id, keys in wanted.over.items():
        for key in keys:
            member = work.members[alert_id][key]
            member.ended_at = work.now
            work.changed.append(member)
        work.touched.add(alert_id)


def _open(work: _Pass, firings: Sequence[Firing]) -> None:
    first = min(firings, key=lambda firing: (firing.since, firing.key))
    alert = Alert(
        group=first.group,
        code=first.code,
        data=dict(first.data),
        severity=max(firing.severity for firing in firings),
        cluster_id=first.cluster_id,
        tenant_id=first.tenant_id,
        since=first.since,
        last_at=work.now,
        round_at=work.now,
    )
    alert.save(force_insert=True)
    work.alerts[alert.pk] = alert
    work.members[alert.pk] = {}
    _join(work, alert, firings)


def _join(work: _Pass, alert: Alert, firings: Iterable[Firing]) -> None:
    alert.last_at = work.now
    work.touched.add(alert.pk)
    pools = set(alert.pools)
    for firing in firings:
        pools.update(map(str, firing.pool_ids))
        member = AlertMember(
            alert=alert,
            key=firing.key,
            code=firing.code,
            data=dict(firing.data),
            severity=firing.severity,
            node=firing.node,
            name=firing.name,
            link=firing.link,
            since=firing.since,
        )
        work.members[alert.pk][firing.key] = member
        work.added.append(member)
    alert.pools = sorted(pools)


def _write(work: _Pass) -> None:
    """Write members, then what follows from them for their alerts."""
    fields = ["data", "severity", "link", "since", "ended_at"]
    AlertMember.objects.bulk_update(work.changed, fields, batch_size=500)
    AlertMember.objects.bulk_create(work.added, batch_size=500)
    for alert_id in work.touched:
        alert, members = work.alerts[alert_id], work.members[alert_id].values()
        firing = [member for member in members if member.ended_at is None]
        alert.count, alert.open_count = len(members), len(firing)
        if firing:
            alert.severity = max(alert.severity, *(member.severity for member in firing))
        if firing and alert.state == State.RESOLVED and alert.resolved_by_id is None:
            _reopen(work, alert)
        elif not firing and alert.state != State.RESOLVED:
            _resolve(work, alert)
        elif firing and alert.state != State.RESOLVED:
            deliveries.tell_firing([alert], work.routes, work.now + deliveries.GATHERED)
        alert.save()


def _reopen(work: _Pass, alert: Alert) -> None:
    """Open it again. Tell people only if they heard that it was over, and if it stays."""
    alert.resolved_at = None
    is_silenced = alert.silenced_until is not None and alert.silenced_until > work.now
    if deliveries.take_back_resolved(alert):
        _begin_round(work, alert, work.now + deliveries.HELD_BACK, State.FIRING)
    elif not deliveries.was_told(alert):
        deliveries.tell_firing([alert], work.routes, work.now + deliveries.HELD_BACK)
    alert.state = State.ACKNOWLEDGED if alert.acknowledged_at else State.FIRING
    if is_silenced:
        alert.state = State.SILENCED


def _begin_round(work: _Pass, alert: Alert, due_at: datetime, state: Alert.State) -> None:
    alert.round, alert.round_at, alert.state = alert.round + 1, work.now, state
    alert.acknowledged_at = alert.acknowledged_by = alert.escalated_at = None
    deliveries.tell_firing([alert], work.routes, due_at)


def _resolve(work: _Pass, alert: Alert) -> None:
    deliveries.tell_resolved(alert, work.now)
    alert.state, alert.resolved_at = State.RESOLVED, work.now


def _pass_time(work: _Pass) -> None:
    """End silences, and escalate what nobody acknowledged."""
    for alert in Alert.objects.filter(state=State.SILENCED, silenced_until__lte=work.now):
        deliveries.drop_unsent(alert)
        alert.silenced_until = None
        _begin_round(work, alert, work.now, State.FIRING)
        alert.save()
        work.touched.add(alert.pk)
    firing = Alert.objects.filter(state=State.FIRING)
    for alert in deliveries.escalate(firing, work.routes, work.now):
        if Alert.objects.filter(pk=alert.pk, escalated_at=None).update(escalated_at=work.now):
            work.touched.add(alert.pk)


def states() -> dict[str, int]:
    """Return how many alerts are in each state."""
    rows = Alert.objects.order_by().values("state").annotate(count=Count("pk"))
    return {row["state"]: row["count"] for row in rows}
