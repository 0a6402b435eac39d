"""Words in which the trial cluster's parts fail: people get each of them explained."""

import pytest

from clusters import explain
from devcluster.faults.podfaults import WORDS as POD_WORDS
from devcluster.faults.volumefaults import WORDS as VOLUME_WORDS

BEFORE = {"provision": 'failed to provision volume with StorageClass "net-shared": '}
SAID = [
    pytest.param(source, BEFORE.get(step, "") + text, id=f"{step} {word}")
    for source, steps in (("container", POD_WORDS), ("volume", VOLUME_WORDS))
    for step, words in steps.items()
    for word, text in words.items()
]


@pytest.mark.parametrize(("source", "text"), SAID)
def test_every_word_is_a_whole_sentence_that_people_get_explained(source: str, text: str) -> None:
    whole = text.format(id="f00d", volume="pvc-1", driver="net.devcluster.local", node="a100-1", path="/mnt")
    assert explain.diagnose(source, whole).known


def test_a_lost_gpu_that_poisons_its_node_is_explained() -> None:
    text = "Allocate failed due to error creating nvml.Device 5: nvml: GPU is lost, which is unexpected"
    assert explain.diagnose("container", text).code == "gpu_lost"
