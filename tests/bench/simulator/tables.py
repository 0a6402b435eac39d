"""Tables that show a trace's figures under each policy side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import mean

from quotas.scheduling.forecast import Confidence
from tests.bench import Table
from tests.bench.simulator import figures
from tests.bench.simulator.engine import Work
from tests.bench.simulator.figures import Replayed
from tests.bench.simulator.foretold import WITHIN_HOURS, Told
from tests.bench.simulator.trace import HOUR, Trace

Side = Mapping[str, Replayed]
SIZES: Mapping[str, Callable[[float], bool]] = {
    "part of a GPU": lambda gpus: gpus < 1,
    "1 GPU": lambda gpus: gpus == 1,
    "2 to 4 GPUs": lambda gpus: 2 <= gpus <= 4,
    "8 GPUs": lambda gpus: gpus == 8,
}
HONESTY = ("told", "without a range", "inside", "before, after", "median width", "as part of the wait")
FIGURES: Mapping[str, Callable[[Replayed], str]] = {
    "GPUs in use": lambda one: percent(figures.utilisation(one)),
    "wait: mean, p95": lambda one: waits(one.works),
    "wait: longest": lambda one: f"{max(work.waited for work in one.works) / HOUR:.1f} h",
    "within its own quota: started in 15 minutes": lambda one: percent(figures.own_at_once(one)),
    "Jain index of the fair part that each tenant had": lambda one: f"{figures.jain_of_fair_parts(one):.3f}",
    "of its fair part, the tenant that had least": lambda one: percent(least_fair(one)),
    "Jain index of tenants' mean slowdown": lambda one: f"{figures.jain_of_slowdowns(one):.3f}",
    "mean slowdown of the tenant that was slowed most": lambda one: f"{most_slowed(one):.1f}",
    "runs asked back and stopped": lambda one: str(figures.reclaims(one)),
    "GPU-hours lost by that and by failed nodes": lambda one: f"{figures.lost_gpu_hours(one):.0f}",
}


def compared(trace: Trace, side: Side) -> Table:
    rows = [(what, *(figure(one) for one in side.values())) for what, figure in FIGURES.items()]
    for size, fits in SIZES.items():
        rows.append(
            (f"wait, {size}: mean, p95", *(waits(figures.of_gpus(one, fits)) for one in side.values()))
        )
    return Table((f"{trace.name}: {len(next(iter(side.values())).works)} runs", *side), rows)


def by_tenant(trace: Trace, side: Side) -> Table:
    rows = []
    for tenant, name in trace.tenants.items():
        of = {policy: figures.of_tenant(one, tenant) for policy, one in side.items()}
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
    found = figures.honesty(of, sure)
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


def waits(works: Iterable[Work]) -> str:
    works = list(works)
    return f"{figures.mean_hours(works):.1f}, {figures.p95_hours(works):.1f} h" if works else ""


def percent(part: float) -> str:
    return f"{part:.0%}"


def least_fair(one: Replayed) -> float:
    return min(figures.fair_part(one, tenant) for tenant in one.trace.tenants)


def most_slowed(one: Replayed) -> float:
    return max(mean(map(figures.slowdown, figures.of_tenant(one, tenant))) for tenant in one.trace.tenants)
