"""Tests that devcluster answers as a real Kubernetes 1.36.2 did, except for `known_differences`.

`recorded/` holds that cluster's answers. Each scenario is replayed, request by request: on devcluster, or on the
cluster of $BERTH_TEST_KUBECONFIG, which must be a disposable one. On that cluster, no difference is allowed.
"""

import json
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.testing.cluster import running
from devcluster.testing.kube import Kube
from tests.cluster_contract.ground import clear, lacking, outlived
from tests.cluster_contract.known_differences import DIFFERENCES, listed
from tests.cluster_contract.player import RECORDED, Found, play, scenario
from tests.cluster_contract.steps import STEPS

SCENARIOS = sorted(path.stem for path in RECORDED.glob("*.json"))
FOREIGN = os.environ.get("BERTH_TEST_KUBECONFIG")
"""Another cluster than devcluster; the known differences are not its own."""
REFERENCE = "packages/devcluster/docs/reference.md"
"""Page that lists the known differences for people."""
RECORDER = "python-requests/2"
"""The recording's client, by which it owned fields."""
GPUS = "gpus: {product: NVIDIA-A100-SXM4-80GB, count: 8, memory_mib: 81920}"
# Pods start slowly, so that answers recorded before they start are the same here.
NODES = f"""
nodes:
  - {{name: fake-0, cpu: 64, memory: 512Gi, pods: 1000, {GPUS}}}
  - {{name: fake-1, cpu: 64, memory: 512Gi, pods: 1000, {GPUS}}}
played: {{start_seconds: 0.7, ready_seconds: 0.05, stop_seconds: 0.1}}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    if FOREIGN:
        kube = Kube(Path(FOREIGN))
        kube.agent = RECORDER
        clear(kube)
        yield kube
        clear(kube)
        return
    for devcluster in running(tmp_path_factory.mktemp("contract"), "--pods", "played", nodes=NODES):
        devcluster.agent = RECORDER
        for name in ("local-fast", "net-shared"):  # the recorded cluster had no classes of its own
            devcluster.call("DELETE", f"/apis/storage.k8s.io/v1/storageclasses/{name}")
        yield devcluster


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_answers_as_the_recorded_cluster_did(cluster: Kube, name: str) -> None:
    if FOREIGN and (reason := lacking(cluster, name)):
        pytest.skip(reason)
    known = {} if FOREIGN else listed(name)
    broken, vanished, forgotten = [], [], outlived(cluster, name)
    for note, found in play(cluster, name, STEPS, set(known)).items():
        if note in forgotten:
            warnings.warn(f"not compared, the cluster is too old: {name}: {note}", stacklevel=1)
            continue
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


def test_few_answers_differ_and_the_documentation_says_which_and_why() -> None:
    page = (Path(__file__).parents[2] / REFERENCE).read_text()
    entries = set()
    for difference in DIFFERENCES:
        row = next((line for line in page.splitlines() if difference.why in line), "")
        for name, notes in difference.places.items():
            entries |= {(name, note) for note in notes}
            missing = [part for part in (name, *(f"`{note}`" for note in notes)) if part not in row]
            assert not missing, f"missing in {REFERENCE}, of {difference.why!r}: {missing}"
    assert len(entries) <= 15, f"{len(entries)} recorded answers differ"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*"), re.DOTALL)


def _told(note: str, at: str, found: Found) -> str:
    recorded, given = (json.dumps(value)[:300] for value in found[at])
    return f"{note}: {at}\n    recorded {recorded}\n    given    {given}"
