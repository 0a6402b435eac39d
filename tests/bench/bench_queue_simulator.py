"""The queue over weeks: two made traces of 10,000 runs on 200 GPUs, beside plain FIFO and FIFO with fixed quotas"""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench import Table
from tests.bench.simulator.deadline import deadline
from tests.bench.simulator.everyday import everyday
from tests.bench.simulator.figures import by_tenant, compared, replay, told, told_within
from tests.bench.simulator.policies import POLICIES

SEED = 1


def tables() -> Iterator[Table]:
    for make in (everyday, deadline):
        trace = make(SEED)
        replayed = {
            name: replay(trace, policy, foretells=name == "Berth") for name, policy in POLICIES.items()
        }
        yield compared(trace, replayed)
        yield by_tenant(trace, replayed)
        yield told(trace, replayed["Berth"])
        yield told_within(trace, replayed["Berth"])
