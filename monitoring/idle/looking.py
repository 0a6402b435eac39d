"""Looks at a cluster's runs, about once a minute: find idle ones, warn their people, stop them.

A look is level-triggered: it may come twice, late, or be killed anywhere. Only runs are looked at that may be stopped,
and only those are asked whose figures are quiet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.locks import forget
from clusters.models import Cluster
from clusters.watch.ticks import is_due
from monitoring import enqueue
from monitoring.figures.thinning import MINUTE
from monitoring.idle import activity, asking, figures, steps
from monitoring.idle.activity import Known, Verdict
from monitoring.idle.figures import Asked, Quiet
from monitoring.idle.policy import Rules, most_exact, rules_of
from monitoring.models import IdleLook, IdlePolicy
from quotas import sharing
from quotas.models import Claim
from workspaces.models import Desired, Phase, Workspace
from workspaces.runs import idleness
from workspaces.runs.idleness import Idleness
from workspaces.state.inside import Inside

# Window of a run whose figures were quiet at the last look, and of one that was not.
SHORT_SECONDS = 10 * MINUTE
# Asked in one look; those that wait longest come first.
MOST_ASKED = 1000
AT_ONCE = 1000  # rows in one statement
Ask = Callable[[Sequence[Workspace]], Mapping[UUID, Inside | None]]


@dataclass
class Candidate:
    """A run that may be stopped, with what is known of it."""

    workspace: Workspace
    rules: Rules
    known: Known
    had_since: datetime | None  # of its figures, at the last look
    others_wait: bool = False
    figures: Sequence[str] = ()
    figures_since: datetime | None = None

    def __post_init__(self) -> None:
        self.known_before = self.known

    @property
    def run(self) -> UUID:
        assert self.workspace.run is not None
        return self.workspace.run

    @cached_property
    def gpus(self) -> int:
        return gpus_of(self.workspace)

    def ends(self, since: datetime) -> datetime:
        return self.rules.ends(since, others_wait=self.others_wait)

    def warning(self, now: datetime) -> timedelta:
        return self.rules.warning(now, others_wait=self.others_wait)

    def verdict(self, now: datetime) -> Verdict:
        assert self.workspace.ready_at is not None
        return activity.judge(
            now,
            begun_at=self.workspace.ready_at,
            figures=self.figures,
            figures_since=self.figures_since,
            known=self.known,
            kept_at=self.workspace.kept_alive_at,
            allowed=self.rules.allowed(now, others_wait=self.others_wait),
        )

    def asked(self, since: datetime, until: datetime) -> Asked:
        return Asked(
            self.run,
            int(since.timestamp()),
            int(until.timestamp()),
            self.rules.gpu_percent,
            self.rules.cpu_cores,
            self.gpus,
            sharing.of(self.workspace.pool).is_instance if self.gpus else False,
        )


def gpus_of(holder: Workspace | Claim) -> int:
    """Return how many GPUs must have figures before anything is known of the run."""
    if not holder.units or not holder.pool.has_gpus:
        return 0
    return max(holder.cards, int(holder.pool.gpus(holder.units)), 1)


def on_tick(**_: object) -> None:
    """Enqueue a look about once a minute at each cluster where something could be stopped, or was about to be."""
    if is_due(MINUTE):
        rows = may_be_looked_at()
        clusters = Cluster.objects.filter(unreachable_since__isnull=True)
        for cluster_id in clusters.filter(pk__in=rows.values("pool__cluster")).values_list("pk", flat=True):
            enqueue.look_for_idle(cluster_id)


def may_be_looked_at() -> QuerySet[Workspace]:
    """Return runs that a policy or their person's wish may stop, and those with a state that may be out of date."""
    ready = Workspace.objects.filter(phase=Phase.READY, desired=Desired.RUNNING, ending="", run__isnull=False)
    shows = Q(idle_since__isnull=False) | ~Q(idle_busy_by=[])
    may = Q(idle_minutes__isnull=False) | shows
    if IdlePolicy.objects.filter(is_active=True).exists():
        may |= Q(units__gt=0)
    return ready.filter(may, ready_at__isnull=False)


def look(cluster_id: UUID, ask: Ask = asking.ask) -> None:
    if Cluster.objects.filter(pk=cluster_id, unreachable_since__isnull=False).exists():
        return  # nothing is known of it
    now = timezone.now()
    found = candidates(cluster_id)
    look_at_figures(found, now)
    ask_quiet_ones(found, now, ask)
    keep(cluster_id, found)
    steps.take(found, now, ask)


def candidates(cluster_id: UUID) -> list[Candidate]:
    """Return the cluster's runs that may be stopped. Where nothing stops one any more, its state is cleared."""
    policies = list(IdlePolicy.objects.all())
    related = ("tenant", "owner", "image", "pool", "secret")
    rows = may_be_looked_at().filter(pool__cluster=cluster_id).select_related(*related)
    looks = {row.run: row for row in IdleLook.objects.filter(cluster=cluster_id)}
    waits = waiting_pools(cluster_id)
    found = []
    for row in rows:
        policy = most_exact(policies, row.tenant_id, row.pool_id)
        rules = rules_of(policy, has_gpus=gpus_of(row) > 0, own_minutes=row.idle_minutes)
        assert row.run is not None
        if not rules.stops:
            if row.idle_since is not None or row.idle_busy_by:
                idleness.note(row.pk, row.run, Idleness())
            continue
        had = looks.get(row.run)
        since = had.figures_since if had else None
        found.append(Candidate(row, rules, known_of(had), since, row.pool_id in waits))
    return found


def waiting_pools(cluster_id: UUID) -> set[UUID]:
    """Return the pools of the cluster for whose GPUs somebody waits."""
    rows = Claim.objects.filter(state=Claim.State.WAITING, units__gt=0, pool__cluster=cluster_id)
    return set(rows.values_list("pool", flat=True).distinct())


def look_at_figures(found: Iterable[Candidate], now: datetime) -> None:
    """Set what figures say of each: of the last minutes for all, further back where they have become quiet, and
    where the end is near: so that a gap that no look saw counts, too."""
    found, seconds = list(found), int(now.timestamp())
    short = figures.quiet([one.asked(_back(one, now, SHORT_SECONDS), now) for one in found], seconds)
    further = []
    for one in found:
        one.figures = activity.busy_figures(short[one.run], seconds)
        one.figures_since = None if one.figures else one.had_since
        if not one.figures and (
            one.had_since is None or _may_act(one, now) or _broken(short[one.run], seconds, one)
        ):
            further.append(one)
    longest = figures.quiet(
        [
            one.asked(_back(one, now, one.rules.longest.total_seconds() + SHORT_SECONDS), now)
            for one in further
        ],
        seconds,
    )
    for one in further:
        one.figures_since = activity.quiet_since(longest[one.run], seconds)


def _back(one: Candidate, now: datetime, span_seconds: float) -> datetime:
    assert one.workspace.ready_at is not None
    return max(one.workspace.ready_at, datetime.fromtimestamp(now.timestamp() - span_seconds, now.tzinfo))


def _may_act(one: Candidate, now: datetime) -> bool:
    since = one.workspace.idle_since
    return since is not None and now >= one.ends(since) - one.warning(now)


def _broken(short: Quiet, now: int, one: Candidate) -> bool:
    """Return True if it was busy, or not known, within the last minutes: the time that was kept does not hold."""
    assert one.workspace.ready_at is not None
    begin = max(one.workspace.ready_at.timestamp(), now - SHORT_SECONDS)
    return not short.both or short.both[-1][0] > begin + 2 * MINUTE


def ask_quiet_ones(found: Iterable[Candidate], now: datetime, ask: Ask) -> None:
    """Ask those whose figures are quiet and whose last answer is old, and those that would be warned or stopped."""
    due = []
    for one in found:
        allowed = one.rules.allowed(now, others_wait=one.others_wait)
        if not one.figures and (one.known.is_due(now, allowed) or _may_act(one, now)):
            due.append(one)
    due.sort(key=lambda one: one.known.asked_at or one.workspace.ready_at or now)
    answers = ask([one.workspace for one in due[:MOST_ASKED]])
    for one in due:
        if one.run in answers:
            allowed = one.rules.allowed(now, others_wait=one.others_wait)
            one.known = one.known.heard(now, answers[one.run], allowed)


# --- What is kept between looks


def known_of(row: IdleLook | None) -> Known:
    if row is None:
        return Known()
    answer = Inside(**row.answer) if row.answer else None
    return Known(
        asked_at=row.asked_at,
        answered_at=row.answered_at,
        answer=answer,
        quiet_since=row.quiet_since,
        kept_at=row.kept_at,
    )


def keep(cluster_id: UUID, found: Sequence[Candidate]) -> None:
    """Write what differs from the last look, and forget runs that are over."""
    changed = [
        one for one in found if one.figures_since != one.had_since or one.known is not one.known_before
    ]
    rows = [
        IdleLook(run=one.run, cluster_id=cluster_id, figures_since=one.figures_since, **_columns(one.known))
        for one in changed
    ]
    columns = ["figures_since", "asked_at", "answered_at", "answer", "quiet_since", "kept_at"]
    IdleLook.objects.bulk_create(
        rows, AT_ONCE, update_conflicts=True, unique_fields=["run"], update_fields=columns
    )
    forget(IdleLook.objects.filter(cluster=cluster_id).exclude(run__in=[one.run for one in found]))


def _columns(known: Known) -> dict[str, Any]:
    columns = {name: getattr(known, name) for name in ("asked_at", "answered_at", "quiet_since", "kept_at")}
    return columns | {"answer": asdict(known.answer) if known.answer else None}
