"""Reports of the trial cluster's simulated agents: in the form of the real agent's."""

import json
from pathlib import Path

import pytest

from devcluster.gpuplay.agent import Portal, Stream
from devcluster.resources import Obj
from devcluster.testing.gpubench import NOW, Bench
from monitoring.intake import checks


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


FAULTS: list[tuple[Obj, ...]] = [
    (),
    ({"gpu": "whole/0", "xid": 79}, {"gpu": "whole/1", "state": "lost"}),
    ({"gpu": "whole/0", "state": "reset_required"}, {"gpu": "whole/1", "hot": True}),
    ({"node": "whole", "agent": "library_missing"},),
    ({"node": "whole", "agent": "kubelet_silent"}, {"gpu": "cut/0", "ecc_uncorrected": 1}),
]


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("node", ["whole", "sliced", "cut", "hami"])
def test_its_batches_fit_the_schema_and_have_no_other_field(
    bench: Bench, node: str, faults: tuple[Obj, ...]
) -> None:
    bench.run("a", node)
    for fault in faults:
        bench.faults.add(fault)
    looker = bench.lookers[node]
    stream = Stream(bench.fleet.named(node), looker, Portal("http://127.0.0.1:1", Path("none")), 3.0)
    body = stream.batch([json.dumps(looker.look(NOW) | {"sequence": 1})])
    batch = checks.batch(body)
    assert batch == json.loads(body)  # the check drops unknown fields
    assert batch["simulated"] is True
    assert batch["reports"][0]["gpus"] or "library_missing" in str(faults)
