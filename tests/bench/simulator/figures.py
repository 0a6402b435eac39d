"""Figures of a trace's outcome under each policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median
from uuid import UUID

from quotas.scheduling.forecast import Confidence
from tests.bench.simulator.engine import LETTING_GO, STARTING, Simulation, Work
from tests.bench.simulator.foretold import Teller, Told
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


def mean_hours(works: Iterable[Work]) -> float:
    """Return the mean of all waiting time, also after a run was stopped in the midst of its work."""
    return mean(work.waited for work in works) / HOUR


def p95_hours(works: Iterable[Work]) -> float:
    return quantile([work.waited for work in works], 0.95) / HOUR


def quantile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


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


def fair_part(replayed: Replayed, tenant: UUID) -> float:
    """Return which part of its fair part a tenant had, summed over all moments."""
    of = [(simulation.pool.units_per_gpu, simulation.meter) for simulation in replayed.simulations]
    fair = sum(meter.fair[tenant] / gpu for gpu, meter in of)
    return sum(meter.got_of_fair[tenant] / gpu for gpu, meter in of) / fair if fair else 1.0


def jain(values: Sequence[float]) -> float:
    """Return Jain's index: 1 when all are equal, 1/n when a single value has everything."""
    return sum(values) ** 2 / (len(values) * sum(value**2 for value in values))


def jain_of_fair_parts(replayed: Replayed) -> float:
    return jain([fair_part(replayed, tenant) for tenant in replayed.trace.tenants])


def jain_of_slowdowns(replayed: Replayed) -> float:
    return jain([mean(map(slowdown, of_tenant(replayed, tenant))) for tenant in replayed.trace.tenants])


def own_at_once(replayed: Replayed) -> float:
    """Return the part of requests within the tenant's own quota that started within 15 minutes."""
    own = [work for work in replayed.works if work.within_own]
    return sum(work.first_start - work.job.at <= AT_ONCE for work in own) / len(own)


def reclaims(replayed: Replayed) -> int:
    return sum(simulation.reclaims for simulation in replayed.simulations)


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
