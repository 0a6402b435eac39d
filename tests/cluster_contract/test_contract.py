"""devcluster answers as a real Kubernetes 1.36.2 did, but where `known_differences` says so.

`recorded/` holds what that cluster answered. Each scenario is played anew, request by request.
"""

import json
import re
from collections.abc import Iterator

import pytest

from tests.cluster_contract.known_differences import DIFFERENCES, listed
from tests.cluster_contract.player import RECORDED, Found, play, scenario
from tests.cluster_contract.steps import STEPS
from tests.devcluster.cluster import DevCluster, running

SCENARIOS = sorted(path.stem for path in RECORDED.glob("*.json"))
GPUS = "gpus: {product: NVIDIA-A100-SXM4-80GB, count: 8, memory_mib: 81920}"
# Pods start slowly, so that what is recorded of pods that have not started is the same here.
NODES = f"""
nodes:
  - {{name: fake-0, cpu: 64, memory: 512Gi, pods: 1000, {GPUS}}}
  - {{name: fake-1, cpu: 64, memory: 512Gi, pods: 1000, {GPUS}}}
played: {{start_seconds: 0.7, ready_seconds: 0.05, stop_seconds: 0.1}}
"""


class Client(DevCluster):
    agent = "python-requests/2"  # the recording's field manager


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    yield from running(tmp_path_factory.mktemp("contract"), "--pods", "played", nodes=NODES, kind=Client)


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_answers_as_the_recorded_cluster_did(cluster: DevCluster, name: str) -> None:
    known = listed(name)
    broken, vanished = [], []
    for note, found in play(cluster, name, STEPS, set(known)).items():
        patterns = {pattern: _pattern(pattern) for pattern in known.get(note, ())}
        broken += [
            _told(note, at, found) for at in found if not any(p.fullmatch(at) for p in patterns.values())
        ]
        vanished += [f"{note}: {text}" for text, p in patterns.items() if not any(map(p.fullmatch, found))]
    assert not broken, "\n".join(["differs from the recording:", *broken])
    assert not vanished, "\n".join(["no longer differs, so take it off the list:", *vanished])


def test_the_list_of_differences_names_what_was_recorded() -> None:
    for difference in DIFFERENCES:
        for name, notes in difference.places.items():
            assert not set(notes) - {entry["note"] for entry in scenario(name)}, name


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*"), re.DOTALL)


def _told(note: str, at: str, found: Found) -> str:
    recorded, given = (json.dumps(value)[:300] for value in found[at])
    return f"{note}: {at}\n    recorded {recorded}\n    given    {given}"
