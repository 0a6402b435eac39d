"""Choose the policy that holds for a run, and when that stops it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import cached_property
from uuid import UUID
from zoneinfo import ZoneInfo

from monitoring.models import IdlePolicy

DEFAULTS = IdlePolicy()
# A night begins or ends twice a day: so many changes are looked at before the longest time of a policy is over.
MOST_CHANGES = 70


@dataclass(frozen=True)
class Night:
    begin: time
    end: time
    zone: str

    @cached_property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.zone)

    def holds(self, at: datetime) -> bool:
        clock = at.astimezone(self._zone).time()
        if self.begin <= self.end:
            return self.begin <= clock < self.end
        return clock >= self.begin or clock < self.end

    def next_change(self, at: datetime) -> datetime:
        """Return the next time after `at` at which a night begins or ends."""
        local = at.astimezone(self._zone)
        days = (local.date() + timedelta(days=ahead) for ahead in range(3))
        changes = (
            datetime.combine(day, edge, self._zone).astimezone(at.tzinfo)
            for day in days
            for edge in (self.begin, self.end)
        )
        return min(change for change in changes if change > at)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What holds for one run. `minutes`: None: no policy stops it. `own_minutes`: its person's own wish."""

    minutes: int | None = None
    night_minutes: int | None = None
    night: Night | None = None
    waiting_minutes: int | None = None
    own_minutes: int | None = None
    warning_minutes: int = DEFAULTS.warning_minutes
    gpu_percent: float = DEFAULTS.gpu_percent
    cpu_cores: float = DEFAULTS.cpu_cores

    @property
    def stops(self) -> bool:
        return self.minutes is not None or self.own_minutes is not None

    @property
    def longest(self) -> timedelta:
        """Longest time for which the run may be idle under these rules."""
        return timedelta(minutes=max(self.minutes or 0, self.night_minutes or 0, self.own_minutes or 0))

    def warning(self, at: datetime, *, others_wait: bool = False) -> timedelta:
        """Return how long before its stop the person is warned: at most half of the time that it may be idle."""
        return min(timedelta(minutes=self.warning_minutes), self.allowed(at, others_wait=others_wait) / 2)

    def allowed(self, at: datetime, *, others_wait: bool = False) -> timedelta:
        """Return how long the run may be idle at this time."""
        spans = [self.own_minutes]
        if self.minutes is not None:
            at_night = self.night_minutes is not None and self.night is not None and self.night.holds(at)
            spans.append(self.night_minutes if at_night else self.minutes)
            spans.append(self.waiting_minutes if others_wait else None)
        return timedelta(minutes=min(span for span in spans if span is not None))

    def ends(self, since: datetime, *, others_wait: bool = False) -> datetime:
        """Return when a run that is idle since then has been so for as long as it may be at that time."""
        at = since
        for _ in range(MOST_CHANGES):
            end = max(since + self.allowed(at, others_wait=others_wait), at)
            change = self.night.next_change(at) if self.night and self.night_minutes is not None else end
            if end <= change:
                return end
            at = change
        return at


def most_exact(policies: Iterable[IdlePolicy], tenant: UUID, pool: UUID) -> IdlePolicy | None:
    """Return the policy that holds: of the tenant in the pool, of the tenant, of the pool, of all."""
    fitting = [one for one in policies if one.tenant_id in (None, tenant) and one.pool_id in (None, pool)]
    return max(fitting, key=lambda one: (one.tenant_id is not None, one.pool_id is not None), default=None)


def rules_of(policy: IdlePolicy | None, *, has_gpus: bool, own_minutes: int | None) -> Rules:
    """Return the rules for a run. No policy stops one without GPUs; the person's own wish does."""
    if policy is None:
        return Rules(own_minutes=own_minutes)
    holds = policy.is_active and has_gpus
    night = None
    if policy.night_from is not None and policy.night_until is not None:
        night = Night(policy.night_from, policy.night_until, policy.time_zone)
    return Rules(
        minutes=policy.minutes if holds else None,
        night_minutes=policy.night_minutes if holds else None,
        night=night,
        waiting_minutes=policy.waiting_minutes,
        own_minutes=own_minutes,
        warning_minutes=policy.warning_minutes,
        gpu_percent=policy.gpu_percent,
        cpu_cores=policy.cpu_cores,
    )
