"""Figures of a trace's outcome under each policy, and tables that show them side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from uuid import UUID

from quotas.scheduling.forecast import Confidence
from tests.bench import Table
from tests.bench.simulator.engine import LETTING_GO, STARTING, Simulation, Work
from tests.bench.simulator.foretold import WITHIN_HOURS, Teller, Told
from tests.bench.simulator.policies import Policy
from tests.bench.simulator.trace import HOUR, Trace

SHORT = 600.0
AT_ONCE = 15 * 60.0


@dataclass(frozen=True)
class Replayed:
    """Outcome of a trace under a policy."""

    trace: Trace
    simulations: Sequence[Simulation]
    tellers: Sequence[Teller]

    @property
    def told(self) -> list[Told]:
        return [told for teller in self.tellers for told in teller.told]

    def told_within(self, hours: int) -> list[Told]:
        return [told for teller in self.tellers for told in teller.told_within[hours]]

    @property
    def works(self) -> list[Work]:
        return [work for simulation in self.simulations for work in simulation.work]


def replay(trace: Trace, policy: Policy, *, foretells: bool = False) -> Replayed:
    simulations = [Simulation(pool, policy, Teller() if foretells else None).run() for pool in trace.pools]
    tellers = [simulation.teller for simulation in simulations if simulation.teller]
    return Replayed(trace, simulations, tellers)


def of_gpus(replayed: Replayed, fits: Callable[[float], bool]) -> list[Work]:
    return [
        work
        for simulation in replayed.simulations
        for work in simulation.work
        if fits(work.job.units / simulation.pool.units_per_gpu)
    ]


def of_tenant(replayed: Replayed, tenant: UUID) -> list[Work]:
    return [work for work in replayed.works if work.job.tenant == tenant]


def slowdown(work: Work) -> float:
    """Return the time from request to end, as a factor of what the work needs alone."""
    alone = max(work.job.seconds + STARTING + LETTING_GO, SHORT)
    return max(1.0, (work.ended - work.job.at) / alone)


def utilisation(replayed: Replayed) -> float:
    """Return the part of the existing GPU-hours that were in use."""
    per_gpu = [(simulation.pool.units_per_gpu, simulation.meter) for simulation in replayed.simulations]
    got = sum(sum(meter.got.values()) / gpu for gpu, meter in per_gpu)
    return got / sum(meter.capacity / gpu for gpu, meter in per_gpu)


def fair_parts(replayed: Replayed) -> list[float]:
    """Return which part of its fair part each tenant had, summed over all moments."""
    meters = [(simulation.pool.units_per_gpu, simulation.meter) for simulation in replayed.simulations]
    parts = []
    for tenant in replayed.trace.tenants:
        fair = sum(meter.fair[tenant] / gpu for gpu, meter in meters)
        got = sum(meter.got_of_fair[tenant] / gpu for gpu, meter in meters)
        parts.append(got / fair if fair else 1.0)
    return parts


def slowdowns(replayed: Replayed) -> list[float]:
    """Return the mean slowdown of each tenant's work."""
    return [mean(map(slowdown, of_tenant(replayed, tenant))) for tenant in replayed.trace.tenants]


def jain(values: Sequence[float]) -> float:
    """Return Jain's index: 1 when all are equal, 1/n when a single value has everything."""
    return sum(values) ** 2 / (len(values) * sum(value**2 for value in values))


def own_at_once(replayed: Replayed) -> float:
    """Return the part of requests within the tenant's own quota that started within 15 minutes."""
    own = [work for work in replayed.works if work.within_own]
    return sum(work.first_start - work.job.at <= AT_ONCE for work in own) / len(own)


def lost_gpu_hours(replayed: Replayed) -> float:
    return sum(
        work.lost_seconds * work.job.units / simulation.pool.units_per_gpu / HOUR
        for simulation in replayed.simulations
        for work in simulation.work
    )


@dataclass(frozen=True)
class Honesty:
    """Comparison of forecast ranges with the actual starts."""

    told: int
    without: int
    inside: float
    early: float
    late: float
    median_hours: float
    median_of_wait: float


def honesty(told: Iterable[Told], sure: Confidence | None = None) -> Honesty | None:
    of = [one for one in told if sure in (None, one.sure)]
    ranged = [(one, one.range, one.range.latest) for one in of if one.range and one.range.latest]
    if not ranged:
        return None
    widths = [(latest - range_.earliest).total_seconds() for _one, range_, latest in ranged]
    waits = [max(60.0, (one.started_at - one.at).total_seconds()) for one, _range, _latest in ranged]
    return Honesty(
        told=len(ranged),
        without=len(of) - len(ranged),
        inside=sum(one.is_inside for one, _range, _latest in ranged) / len(ranged),
        early=sum(one.started_at < range_.earliest for one, range_, _latest in ranged) / len(ranged),
        late=sum(one.started_at > latest for one, _range, latest in ranged) / len(ranged),
        median_hours=median(widths) / HOUR,
        median_of_wait=median(width / wait for width, wait in zip(widths, waits, strict=True)),
    )


# --- Tables


Side = Mapping[str, Replayed]
SIZES: Mapping[str, Callable[[float], bool]] = {
    "part of a GPU": lambda gpus: gpus < 1,
    "1 GPU": lambda gpus: gpus == 1,
    "2 to 4 GPUs": lambda gpus: 2 <= gpus <= 4,
    "8 GPUs": lambda gpus: gpus == 8,
}
HONESTY = ("told", "without a range", "inside", "before, after", "median width", "as part of the wait")
FIGURES: Mapping[str, Callable[[Replayed], str]] = {
    "GPUs in use": lambda one: percent(utilisation(one)),
    "wait: mean, p95": lambda one: waits(one.works),
    "wait: longest": lambda one: f"{max(work.waited for work in one.works) / HOUR:.1f} h",
    "within its own quota: started in 15 minutes": lambda one: percent(own_at_once(one)),
    "Jain index of the fair part that each tenant had": lambda one: f"{jain(fair_parts(one)):.3f}",
    "of its fair part, the tenant that had least": lambda one: percent(min(fair_parts(one))),
    "Jain index of tenants' mean slowdown": lambda one: f"{jain(slowdowns(one)):.3f}",
    "mean slowdown of the tenant that was slowed most": lambda one: f"{max(slowdowns(one)):.1f}",
    "runs asked back and stopped": lambda one: str(
        sum(simulation.reclaims for simulation in one.simulations)
    ),
    "GPU-hours lost by that and by failed nodes": lambda one: f"{lost_gpu_hours(one):.0f}",
}


def compared(trace: Trace, side: Side) -> Table:
    rows = [(what, *(figure(one) for one in side.values())) for what, figure in FIGURES.items()]
    for size, fits in SIZES.items():
        rows.append((f"wait, {size}: mean, p95", *(waits(of_gpus(one, fits)) for one in side.values())))
    return Table((f"{trace.name}: {len(next(iter(side.values())).works)} runs", *side), rows)


def by_tenant(trace: Trace, side: Side) -> Table:
    rows = []
    for tenant, name in trace.tenants.items():
        of = {policy: of_tenant(one, tenant) for policy, one in side.items()}
        rows.append(
            (f"{name}, {len(next(iter(of.values())))} runs", *(waits(works) for works in of.values()))
        )
    return Table((f"{trace.name}: wait by tenant, mean, p95", *side), rows)


def told(trace: Trace, replayed: Replayed) -> Table:
    kinds: Mapping[str, Confidence | None] = {
        "all": None, "likely": Confidence.LIKELY, "rough": Confidence.ROUGH
    }  # fmt: skip
    rows = [(name, *_honesty(replayed.told, sure)) for name, sure in kinds.items()]
    return Table((f"{trace.name}: the range told at first", *HONESTY), rows)


def told_within(trace: Trace, replayed: Replayed) -> Table:
    rows = [(f"{hours} h", *_honesty(replayed.told_within(hours))) for hours in WITHIN_HOURS]
    return Table((f"{trace.name}: first told that it starts at the latest in", *HONESTY), rows)


def _honesty(of: Iterable[Told], sure: Confidence | None = None) -> tuple[str, ...]:
    found = honesty(of, sure)
    if found is None:
        return ("0", "", "", "", "", "")
    return (
        str(found.told),
        str(found.without),
        percent(found.inside),
        f"{percent(found.early)}, {percent(found.late)}",
        f"{found.median_hours:.1f} h",
        percent(found.median_of_wait),
    )


def percent(part: float) -> str:
    return f"{part:.0%}"


def waits(works: Iterable[Work]) -> str:
    """Return mean and p95 of all waiting time, also after a run was stopped in the midst of its work."""
    waited = sorted(work.waited / HOUR for work in works)
    if not waited:
        return ""
    p95 = waited[min(len(waited) - 1, int(0.95 * len(waited)))]
    return f"{mean(waited):.1f}, {p95:.1f} h"
