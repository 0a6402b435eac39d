"""What idle reclaim would have done: which runs it would have stopped, what that frees, and whose GPUs stood idle.

A dry run of the same rules on the same intervals as live looks. What ran inside a run without GPU and CPU use (a silent
kernel, an open program) is not in the figures, so the report may name runs that a look would have spared.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import Q

from accounts.access import Actor, owned_tenants, visible_tenants
from monitoring.idle import figures
from monitoring.idle.figures import Asked
from monitoring.idle.looking import gpus_of
from monitoring.idle.policy import DEFAULTS, Rules, most_exact, rules_of
from monitoring.models import IdlePolicy
from quotas import sharing
from quotas.models import Claim
from workspaces.models import Workspace

DAYS, MOST_DAYS = 14, 30
# The newest runs are read, so many at once, until the time is over: then the report says that it is cut.
MOST_RUNS = 5000
AT_ONCE = 200
MOST_SECONDS = 8.0
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Stop:
    """A stop that would have been: of a run that was idle from `since` to `until`, at `at`."""

    run: UUID
    workspace: UUID
    tenant: str
    user: str
    pool: str
    gpus: float
    since: datetime
    at: datetime
    until: datetime

    @property
    def freed_gpu_hours(self) -> float:
        return self.gpus * ((self.until - self.at) / HOUR)


@dataclass
class Waste:
    """GPU-hours of a person or tenant: held, and those that idle reclaim would have freed."""

    tenant: str
    user: str = ""
    held_gpu_hours: float = 0
    freed_gpu_hours: float = 0
    stops: int = 0

    @property
    def percent(self) -> float:
        return 100 * self.freed_gpu_hours / self.held_gpu_hours if self.held_gpu_hours else 0


@dataclass(frozen=True)
class Report:
    since: datetime
    until: datetime
    assumed_minutes: int | None  # for runs without a policy, if there are any
    is_cut: bool
    stops: Sequence[Stop]
    people: Sequence[Waste]
    tenants: Sequence[Waste]
    total: Waste


def seen_by(actor: Actor) -> Q:
    """Runs whose idleness the actor may see: all, those of tenants that they own, or their own."""
    if actor.is_admin:
        return Q(tenant__in=visible_tenants(actor))
    return Q(tenant__in=owned_tenants(actor)) | Q(user=actor.user, tenant__in=visible_tenants(actor))


def read(
    where: Q,
    now: datetime,
    *,
    days: int = DAYS,
    minutes: int | None = None,
    most_seconds: float = MOST_SECONDS,
) -> Report:
    """Return the report on workspaces' runs with GPUs. `minutes`: for runs without a policy, instead of the default."""
    since, policies = now - timedelta(days=days), list(IdlePolicy.objects.select_related("tenant", "pool"))
    rows = Claim.objects.filter(where, holder_kind=Claim.Holder.WORKSPACE, units__gt=0, admitted_at__lt=now)
    rows = rows.filter(Q(released_at=None) | Q(released_at__gt=since)).exclude(pool__resource_name="")
    claims = list(rows.select_related("tenant", "user", "pool").order_by("-admitted_at")[: MOST_RUNS + 1])
    ends, read_so_far = time.monotonic() + most_seconds, 0
    stops, assumed = list[Stop](), False
    people, tenants = dict[tuple[str, str], Waste](), dict[str, Waste]()
    for begin in range(0, min(len(claims), MOST_RUNS), AT_ONCE):
        if begin and time.monotonic() > ends:
            break
        part = claims[begin : min(begin + AT_ONCE, MOST_RUNS)]
        rules, without = _rules(part, policies, minutes or DEFAULTS.minutes)
        assumed = assumed or without
        stops += _stops(part, rules, since, now)
        _add_held(part, people, tenants, since, now)
        read_so_far += len(part)
    for stop in stops:
        for waste in (people[stop.tenant, stop.user], tenants[stop.tenant]):
            waste.freed_gpu_hours += stop.freed_gpu_hours
            waste.stops += 1
    total = Waste("")
    for one in tenants.values():
        total.held_gpu_hours += one.held_gpu_hours
        total.freed_gpu_hours += one.freed_gpu_hours
        total.stops += one.stops
    return Report(
        since,
        now,
        (minutes or DEFAULTS.minutes) if assumed else None,
        read_so_far < len(claims),
        sorted(stops, key=lambda stop: -stop.freed_gpu_hours),
        _ranked(people.values()),
        _ranked(tenants.values()),
        total,
    )


def names_of(stops: Iterable[Stop]) -> dict[UUID, str]:
    """Return the names of the stops' workspaces."""
    ids = {stop.workspace for stop in stops}
    return dict(Workspace.objects.filter(pk__in=ids).values_list("pk", "name"))


def _ranked(wastes: Iterable[Waste]) -> list[Waste]:
    return sorted(wastes, key=lambda one: (-one.freed_gpu_hours, one.tenant, one.user))


def _rules(
    claims: Sequence[Claim], policies: Sequence[IdlePolicy], minutes: int
) -> tuple[dict[UUID, Rules], bool]:
    """Return the rules by run, and True if there is a run to which no policy applies."""
    own = dict(
        Workspace.objects.filter(pk__in=[claim.holder_id for claim in claims]).values_list(
            "pk", "idle_minutes"
        )
    )
    found, without = dict[UUID, Rules](), False
    for claim in claims:
        policy = most_exact(policies, claim.tenant_id, claim.pool_id)
        rules = rules_of(policy, has_gpus=True, own_minutes=own.get(claim.holder_id))
        if policy is None and not rules.stops:
            rules, without = replace(rules, minutes=minutes), True
        found[claim.pk] = rules
    return found, without


def _stops(
    claims: Sequence[Claim], rules: Mapping[UUID, Rules], since: datetime, now: datetime
) -> Iterator[Stop]:
    asked = []
    for claim in claims:
        assert claim.admitted_at is not None
        of_run = rules[claim.pk]
        if of_run.stops:
            begin, end = max(claim.admitted_at, since), min(claim.released_at or now, now)
            asked.append(
                Asked(
                    claim.pk,
                    int(begin.timestamp()),
                    int(end.timestamp()),
                    of_run.gpu_percent,
                    of_run.cpu_cores,
                    gpus_of(claim),
                    sharing.of(claim.pool).is_instance,
                )
            )
    quiet = figures.quiet(asked, int(now.timestamp()))
    for claim in claims:
        if claim.pk in quiet:
            for begun, ended in quiet[claim.pk].both:
                idle, until = datetime.fromtimestamp(begun, UTC), datetime.fromtimestamp(ended, UTC)
                at = rules[claim.pk].ends(idle)
                if at < until:
                    yield _stop(claim, idle, at, until)


def _stop(claim: Claim, since: datetime, at: datetime, until: datetime) -> Stop:
    return Stop(
        claim.pk,
        claim.holder_id,
        claim.tenant.slug,
        claim.user.get_username(),
        claim.pool.slug,
        float(claim.pool.gpus(claim.units)),
        since,
        at,
        until,
    )


def _add_held(
    claims: Iterable[Claim],
    people: dict[tuple[str, str], Waste],
    tenants: dict[str, Waste],
    since: datetime,
    now: datetime,
) -> None:
    held: dict[tuple[str, str], float] = defaultdict(float)
    for claim in claims:
        assert claim.admitted_at is not None
        span = min(claim.released_at or now, now) - max(claim.admitted_at, since)
        held[claim.tenant.slug, claim.user.get_username()] += float(claim.pool.gpus(claim.units)) * (
            span / HOUR
        )
    for (tenant, user), hours in held.items():
        for one in (
            people.setdefault((tenant, user), Waste(tenant, user)),
            tenants.setdefault(tenant, Waste(tenant)),
        ):
            one.held_gpu_hours += hours
