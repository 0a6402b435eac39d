"""Simulated GPUs: allocation to pods, use by the life of a pod, and faults."""

from pathlib import Path

import pytest
import yaml

from devcluster import nodes
from devcluster.errors import ApiError
from devcluster.gpuplay.lives import Life
from devcluster.resources import Obj
from devcluster.testing.gpubench import NODES, NOW, Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def held(bench: Bench, node: str) -> list[str]:
    return [holding.device.id for holding in bench.devices.held(node)]


# --- Allocation


def test_a_card_is_a_pods_for_its_life_and_then_the_next_ones(bench: Bench) -> None:
    bench.run("a", "whole")
    bench.run("b", "whole")
    first, second = held(bench, "whole")
    assert first != second
    bench.devices.take_back("uid-a")
    assert held(bench, "whole") == [second]
    bench.run("c", "whole")
    assert held(bench, "whole") == [second, first]


def test_shares_are_taken_from_the_card_that_gave_the_fewest(bench: Bench) -> None:
    for name in "abc":
        bench.run(name, "sliced")
    cards = [holding.device.card for holding in bench.devices.held("sliced")]
    assert cards == [0, 1, 0]
    assert [h["device"].rpartition("::")[2] for h in bench.look("sliced")["holdings"]] == ["0", "0", "1"]


def test_a_pod_gets_no_card_that_its_plugin_has_withdrawn(bench: Bench) -> None:
    bench.switch(gpu="whole/0", xid=79)
    bench.run("a", "whole")
    assert held(bench, "whole") == [bench.devices.cards["whole"][1].uuid]


def test_an_instance_is_known_by_its_own_uuid(bench: Bench) -> None:
    bench.run("a", "cut")
    (holding,) = bench.look("cut")["holdings"]
    assert holding["uuid"] == holding["device"] == bench.gpu("cut", 0)["mig"][0]["uuid"]
    assert bench.gpu("cut", 0)["mig"][0]["processes"][0]["pod_uid"] == "uid-a"
    assert "utilization_percent" not in bench.gpu("cut", 0)


def test_hamis_annotation_says_on_which_card_a_pod_computes_and_the_kubelet_does_not(bench: Bench) -> None:
    second = bench.devices.cards["hami"][1].uuid
    bench.run("a", "hami", annotations={"hami.io/vgpu-devices-allocated": f"{second},NVIDIA,20000,25:;"})
    assert "uuid" not in bench.look("hami")["holdings"][0]
    assert bench.gpu("hami", 0)["processes"] == []
    assert 0 < bench.gpu("hami", 1)["processes"][0]["memory_mib"] <= 20000


@pytest.mark.parametrize("written", ["nonsense", ",,,:;", "GPU-1,NVIDIA,much,1:;", ";;;"])
def test_an_annotation_that_names_no_card_puts_a_pod_on_none(bench: Bench, written: str) -> None:
    bench.run("a", "hami", annotations={"hami.io/vgpu-devices-allocated": written})
    assert [gpu["processes"] for gpu in bench.look("hami")["gpus"]] == [[], []]


def test_what_gpu_manager_gives_out_is_nobodys_card(bench: Bench) -> None:
    bench.run("a", "tencent")
    assert bench.look("tencent")["holdings"] == []


# --- Use


@pytest.mark.parametrize(
    ("life", "after_seconds", "cores", "busy_percent"),
    [
        ("idle", 100, 0, (0, 0)),
        ("steady 70", 100, 0, (60, 80)),
        ("training", 2, 0, (0, 15)),
        ("training", 60, 0, (85, 100)),
        ("ramp 10", 300, 0, (40, 60)),
        ("waves 5", 150, 0, (85, 100)),
        ("by-cpu", 100, 0.9, (80, 100)),
    ],
)
def test_a_life_says_how_busy_a_gpu_is(
    life: str, after_seconds: float, cores: float, busy_percent: tuple[int, int]
) -> None:
    use = Life.read(life).at(after_seconds, 81920, cores, 1.0)
    assert use is not None
    assert busy_percent[0] <= 100 * use.busy <= busy_percent[1]
    assert use.memory_mib <= 81920


def test_a_leak_fills_the_gpu_and_begins_anew() -> None:
    memory = [Life.read("leak 2").at(s, 8192, 0, 1.0) for s in (0, 120, 239, 241)]
    found = [round(use.memory_mib) for use in memory if use]
    assert found[0] < found[1] < found[2] <= 8192
    assert found[3] < found[1]


@pytest.mark.parametrize(("life", "cores"), [("none", 0.0), ("by-cpu", 0.05)])
def test_where_nothing_runs_no_process_is_seen(life: str, cores: float) -> None:
    assert Life.read(life).at(100, 8192, cores, 1.0) is None


def test_a_pods_annotation_says_its_life_and_nonsense_counts_as_not_said(bench: Bench) -> None:
    bench.run("quiet", "whole", annotations={"devcluster.local/gpu-life": "idle"})
    bench.run("odd", "whole", annotations={"devcluster.local/gpu-life": "dancing"})
    assert bench.gpu("whole", 0)["utilization_percent"] == 0
    assert 40 <= bench.gpu("whole", 1)["utilization_percent"] <= 60


@pytest.mark.parametrize("text", ["", "dancing", "ramp 0", "leak -2", "waves nan", "steady much", "ramp inf"])
def test_a_life_that_cannot_be_lived_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"life|float"):
        Life.read(text)


def test_a_node_file_whose_gpus_live_a_life_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    file = yaml.safe_load(NODES)
    file["nodes"][0]["gpus"]["life"] = "dancing"
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump(file))
    with pytest.raises(ValueError, match="life: dancing: not one of none, idle, steady"):
        nodes.read(tmp_path / "nodes.yaml")


def test_a_gpu_that_works_draws_more_and_gets_warm(bench: Bench) -> None:
    idle = bench.gpu("whole", 0)
    bench.run("a", "whole")
    bench.gpu("whole", 0, NOW + 60)
    busy = bench.gpu("whole", 0, NOW + 120)
    for name in ("power_watts", "temperature_celsius", "sm_clock_mhz", "memory_used_mib"):
        assert busy[name] > idle[name]
    assert busy["processes"][0]["container_id"] == "c" * 64


# --- Faults


def test_an_xid_is_told_once_and_what_is_to_be_done_until_it_ends(bench: Bench) -> None:
    fault = bench.switch(gpu="whole/1", xid=79)
    assert [(x["xid"], x["uuid"]) for x in bench.look("whole")["xids"]] == [
        (79, bench.devices.cards["whole"][1].uuid)
    ]
    assert bench.look("whole")["xids"] == []
    assert bench.gpu("whole", 1)["recovery_action"] == "node_reboot"
    bench.faults.remove(fault)
    assert bench.gpu("whole", 1)["recovery_action"] == "none"


@pytest.mark.parametrize(
    ("spec", "allocatable"),
    [
        ({"xid": 79}, "1"),
        ({"xid": 79, "withdrawn": False}, "2"),
        ({"xid": 31}, "2"),
        ({"state": "lost"}, "1"),
        ({"ecc_uncorrected": 3}, "2"),
        ({"ecc_uncorrected": 3, "withdrawn": True}, "1"),
    ],
)
def test_the_plugin_withdraws_a_gpu_as_the_real_one_does_or_as_told(
    bench: Bench, spec: Obj, allocatable: str
) -> None:
    node = bench.fleet.named("whole")
    fault = bench.switch(gpu="whole/0", **spec)
    assert node.allocatable["nvidia.com/gpu"] == allocatable
    bench.faults.remove(fault)
    assert node.allocatable["nvidia.com/gpu"] == "2"


def test_errors_of_memory_are_counted_and_ever_stays(bench: Bench) -> None:
    fault = bench.switch(gpu="whole/0", ecc_uncorrected=3)
    bench.look("whole")
    found = bench.gpu("whole", 0)
    assert (found["ecc_uncorrected_since_boot"], found["ecc_uncorrected_ever"]) == (3, 3)
    bench.faults.remove(fault)
    found = bench.gpu("whole", 0)
    assert (found["ecc_uncorrected_since_boot"], found["ecc_uncorrected_ever"]) == (0, 3)


@pytest.mark.parametrize(
    ("spec", "seen"),
    [
        ({"state": "lost"}, {"state": "lost"}),
        ({"state": "gone"}, {"state": "gone"}),
        ({"state": "failing"}, {"state": "failing"}),
        ({"state": "reset_required"}, {"state": "reset_required", "recovery_action": "gpu_reset"}),
        ({"row_remap": "pending"}, {"row_remap_pending": True, "row_remap_failed": False}),
        ({"row_remap": "failed"}, {"row_remap_pending": False, "row_remap_failed": True}),
        ({"slowed_by": "power_cap"}, {"slowed_by": ["power_cap"]}),
        ({"hot": True}, {"slowed_by": ["hardware_heat"], "temperature_celsius": 93}),
    ],
)
def test_what_ails_a_gpu_is_seen_until_it_ends(bench: Bench, spec: Obj, seen: Obj) -> None:
    before = bench.gpu("whole", 0)
    fault = bench.switch(gpu=bench.devices.cards["whole"][0].uuid, **spec)
    assert seen.items() <= bench.gpu("whole", 0).items()
    bench.faults.remove(fault)
    after = bench.gpu("whole", 0)
    stays_warm = {"temperature_celsius": after["temperature_celsius"]}
    assert after == before | stays_warm


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"gpu": "whole/7", "xid": 79}, 'no GPU "whole/7" is played'),
        ({"gpu": "whole/0"}, "say what ails the GPU, one of: xid, state"),
        ({"gpu": "whole/0", "state": "sad"}, 'unknown state "sad"'),
        ({"node": "whole", "agent": "sad"}, 'unknown agent "sad"'),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(bench: Bench, spec: Obj, words: str) -> None:
    with pytest.raises(ApiError, match=words):
        bench.faults.add(spec)


def test_a_reboot_ends_what_a_reboot_ends(bench: Bench) -> None:
    node = bench.fleet.named("whole")
    bench.switch(gpu="whole/0", xid=79)
    bench.switch(gpu="whole/1", row_remap="failed")
    boot = node.boot_id
    bench.faults.remove(bench.switch(node="whole", state="off"))
    assert node.boot_id != boot
    assert node.allocatable["nvidia.com/gpu"] == "2"
    assert bench.gpu("whole", 0)["recovery_action"] == "none"
    assert bench.gpu("whole", 1)["row_remap_failed"]
    assert len(bench.faults.list()["faults"]) == 1
