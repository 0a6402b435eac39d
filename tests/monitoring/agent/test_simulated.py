"""Reports of the trial cluster's simulated agents: in the form of the real agent's."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from devcluster.gpuplay.agent import Portal, Stream
from devcluster.resources import Obj
from devcluster.testing.gpubench import NOW, Bench
from monitoring.agent import schema


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def batch(bench: Bench, node: str) -> Obj:
    looker = bench.lookers[node]
    stream = Stream(bench.fleet.named(node), looker, Portal("http://127.0.0.1:1", Path("none")), 3.0)
    told: Obj = json.loads(stream.batch([json.dumps(looker.look(NOW) | {"sequence": 1})]))
    return told


def misfits(value: Any, wanted: Any, at: str = "batch") -> Iterator[str]:
    """Yield the places where JSON differs from this type; unknown members count too."""
    origin, parts = get_origin(wanted), get_args(wanted)
    if is_typeddict(wanted):
        yield from members_amiss(value, get_type_hints(wanted, include_extras=True), at)
    elif origin in (list, dict):
        for name, item in value.items() if origin is dict else enumerate(value):
            yield from misfits(item, parts[-1], f"{at}[{name}]")
    elif value not in parts if origin is Literal else not isinstance(value, NUMBERS.get(wanted, wanted)):
        yield f"{at} is {value!r}"


def members_amiss(value: Obj, wanted: Obj, at: str) -> Iterator[str]:
    yield from (f"{at}.{name} is unknown" for name in value.keys() - wanted.keys())
    for name, kind in wanted.items():
        origin: Any = get_origin(kind)
        optional = origin is NotRequired
        if name in value:
            yield from misfits(value[name], get_args(kind)[0] if optional else kind, f"{at}.{name}")
        elif not optional:
            yield f"{at}.{name} is missing"


NUMBERS: dict[Any, Any] = {float: (int, float)}
AILING: list[tuple[Obj, ...]] = [
    (),
    ({"gpu": "whole/0", "xid": 79}, {"gpu": "whole/1", "state": "lost"}),
    ({"gpu": "whole/0", "state": "reset_required"}, {"gpu": "whole/1", "hot": True}),
    ({"node": "whole", "agent": "library_missing"},),
    ({"node": "whole", "agent": "kubelet_silent"}, {"gpu": "cut/0", "ecc_uncorrected": 1}),
]


@pytest.mark.parametrize("faults", AILING)
@pytest.mark.parametrize("node", ["whole", "sliced", "cut", "hami"])
def test_its_batches_have_the_shape_of_the_real_agents(
    bench: Bench, node: str, faults: tuple[Obj, ...]
) -> None:
    bench.run("a", node)
    for fault in faults:
        bench.faults.add(fault)
    told = batch(bench, node)
    assert told["simulated"] is True
    assert told["reports"][0]["gpus"] or "library_missing" in str(faults)
    assert list(misfits(told, schema.Batch)) == []
