"""The agent's report about GPUs, through the real pynvml on a stand-in library."""

from __future__ import annotations

import time

import pynvml
import pytest

from devcluster.testing.waiting import until
from monitoring.agent import look
from tests.monitoring.agent.conftest import Make, Node, codes
from tests.monitoring.agent.stand_in import FIRST, MIG, SECOND, Gpu, Instance, Running, StandIn

POD = "0f3dbd21-3a4c-4f7e-9d7d-3d7f7d6a1b2c"
CONTAINER = "c" * 64


def test_a_gpu_is_reported_with_all_facts_and_figures(looker: Make) -> None:
    seen = looker(StandIn(Gpu(FIRST)))
    report = seen.look()
    assert seen.inventory == {
        "driver_version": "570.86.15",
        "cuda_version": "12.8",
        "gpus": [
            {
                "index": 0,
                "uuid": FIRST,
                "name": "NVIDIA H100 80GB HBM3",
                "memory_mib": 81559,
                "ecc": True,
                "ecc_after_reset": True,
                "compute_capability": "9.0",
                "mig": False,
                "mig_devices": [],
                "pci_bus": "00000000:1b:00.0",
                "power_limit_watts": 700.0,
            }
        ],
    }
    assert report["gpus"] == [
        {
            "uuid": FIRST,
            "state": "ok",
            "utilization_percent": 37,
            "memory_busy_percent": 12,
            "memory_used_mib": 1234,
            "power_watts": 415.25,
            "temperature_celsius": 61,
            "memory_temperature_celsius": 70,
            "sm_clock_mhz": 1980,
            "memory_clock_mhz": 2619,
            "pcie_generation": 5,
            "pcie_width": 16,
            "pcie_replays": 4,
            "pcie_sent_bytes": 1 << 41,
            "nvlink_sent_kib": 1 << 40,
            "nvlink_received_kib": 1 << 40,
            "slowed_by": ["power_cap"],
            "ecc_uncorrected_since_boot": 0,
            "ecc_uncorrected_ever": 2,
            "ecc_corrected_since_boot": 3,
            "ecc_corrected_ever": 17,
            "rows_remapped_corrected": 1,
            "rows_remapped_uncorrected": 0,
            "row_remap_pending": False,
            "row_remap_failed": False,
            "recovery_action": "none",
            "processes": [],
        }
    ]
    assert codes(report) == set()


def test_a_value_that_is_not_offered_is_absent_and_no_failure(looker: Make) -> None:
    plain = Gpu(FIRST, utilization=None, power_milliwatts=None, ecc=None, rows=None)
    plain.nvlink_kib = plain.pcie_bytes = plain.recovery_action = None
    seen = looker(StandIn(plain))
    [sample] = seen.look()["gpus"]
    absent = ("utilization_percent", "power_watts", "row_remap_failed", "nvlink_sent_kib", "pcie_sent_bytes")
    assert not {*absent, "recovery_action"} & set(sample)
    assert not any("ecc" in field for field in sample)
    assert "failed" not in sample
    assert sample["state"] == "ok"
    assert seen.inventory
    assert "ecc" not in seen.inventory["gpus"][0]


@pytest.mark.parametrize(
    ("number", "action"),
    [*enumerate(["none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset"]), (77, "action_77")],
)
def test_the_recovery_action_is_reported_by_name(looker: Make, number: int, action: str) -> None:
    [sample] = looker(StandIn(Gpu(FIRST, recovery_action=number))).look()["gpus"]
    assert sample["recovery_action"] == action


def test_an_older_driver_is_called_by_its_own_functions(looker: Make) -> None:
    old = StandIn(Gpu(FIRST, processes=[Running(7)]))
    old.missing = {
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetFieldValues",
    }
    [sample] = looker(old).look()["gpus"]
    assert sample["memory_used_mib"] == 1234 + 600  # it cannot separate the driver's reserved part
    assert sample["temperature_celsius"] == 61
    assert sample["slowed_by"] == ["power_cap"]
    assert [process["pid"] for process in sample["processes"]] == [7]
    assert "nvlink_sent_kib" not in sample
    assert "failed" not in sample


def test_a_process_is_attributed_to_its_pod(looker: Make, node: Node) -> None:
    cgroup = POD.replace("-", "_")
    node.runs(7, f"0::/kubepods.slice/kubepods-pod{cgroup}.slice/cri-containerd-{CONTAINER}.scope\n")
    node.runs(8, "0::/user.slice/user-1000.slice/session-2.scope\n")
    busy = [Running(7, 512, 80), Running(8, None, 250), Running(9, 64, 5, is_graphics=True)]
    [sample] = looker(StandIn(Gpu(FIRST, processes=busy))).look()["gpus"]
    owner = {"pod_uid": POD, "container_id": CONTAINER}
    assert sample["processes"] == [
        {"pid": 7, "kind": "compute", "memory_mib": 512, "sm_percent": 80} | owner,
        {"pid": 8, "kind": "compute"},  # in no pod; its memory is unknown, and 250 % is no answer
        {"pid": 9, "kind": "graphics", "memory_mib": 64, "sm_percent": 5},
    ]


def test_mig_devices_have_memory_and_processes_and_no_utilisation(looker: Make) -> None:
    seen = looker(StandIn(Gpu(FIRST, mig=[Instance(MIG, processes=[Running(7, 20)])])))
    [sample] = seen.look()["gpus"]
    process = {"pid": 7, "kind": "compute", "memory_mib": 20}
    assert sample["mig"] == [{"uuid": MIG, "memory_used_mib": 40, "processes": [process]}]
    assert not {"utilization_percent", "processes"} & set(sample)
    assert seen.inventory
    [gpu] = seen.inventory["gpus"]
    assert gpu["mig"]
    named = {"uuid": MIG, "name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "memory_mib": 9856}
    assert gpu["mig_devices"] == [named | {"gpu_instance": 1, "compute_instance": 0}]


def test_a_reading_that_fails_is_named_and_hides_no_other(looker: Make) -> None:
    library = StandIn(Gpu(FIRST))
    library.errors["nvmlDeviceGetPowerUsage"] = pynvml.NVML_ERROR_UNKNOWN
    [sample] = looker(library).look()["gpus"]
    assert sample["failed"] == {"power": "unknown"}
    assert "power_watts" not in sample
    assert sample["utilization_percent"] == 37
    assert sample["state"] == "ok"


def test_a_name_that_is_not_text_is_left_out(looker: Make) -> None:
    seen = looker(StandIn(Gpu(FIRST, name=b"\xff\xfe")))
    assert seen.look()["gpus"][0]["state"] == "ok"
    assert seen.inventory
    assert "name" not in seen.inventory["gpus"][0]


def test_a_lost_gpu_keeps_its_uuid_and_hides_no_other(looker: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "INVENTORY_SECONDS", 0)
    library = StandIn(Gpu(FIRST), Gpu(SECOND))
    seen = looker(library)
    seen.look()
    library.lost.add(FIRST)
    report = seen.look()
    assert [(gpu["uuid"], gpu["state"]) for gpu in report["gpus"]] == [(FIRST, "lost"), (SECOND, "ok")]
    assert not {"utilization_percent", "memory_used_mib"} & set(report["gpus"][0])
    # Its sample names it: a problem of the node would affect all others as well.
    assert "gpu_unreadable" not in {trouble["code"] for trouble in report["troubles"]}


def test_a_gpu_lost_before_its_uuid_was_known_is_a_problem_of_the_node(looker: Make) -> None:
    library = StandIn(Gpu(FIRST), Gpu(SECOND))
    library.lost.add(FIRST)
    report = looker(library).look()
    assert [gpu["uuid"] for gpu in report["gpus"]] == [SECOND]
    assert {"code": "gpu_unreadable", "detail": "GPU 0: gpu_is_lost"} in report["troubles"]


def test_a_gpu_that_is_missing_after_nvml_began_anew_is_gone(looker: Make) -> None:
    library = StandIn(Gpu(FIRST), Gpu(SECOND))
    seen = looker(library)
    seen.look()
    seen.close()
    library.gpus.pop(0)
    report = seen.look()
    assert report["gpus"][0] == {"uuid": FIRST, "state": "gone"}
    assert report["gpus"][1]["state"] == "ok"
    assert seen.inventory
    assert [gpu["uuid"] for gpu in seen.inventory["gpus"]] == [FIRST, SECOND]


def test_a_session_that_ends_is_reported_and_begun_anew(looker: Make) -> None:
    library = StandIn(Gpu(FIRST))
    seen = looker(library)
    seen.look()
    library.errors["nvmlDeviceGetUtilizationRates"] = pynvml.NVML_ERROR_UNINITIALIZED
    report = seen.look()
    assert (report["gpus"], codes(report)) == ([], {"nvml_failed"})
    assert library.began == 0  # the old session is ended, not leaked
    library.errors.clear()
    assert seen.look()["gpus"][0]["utilization_percent"] == 37
    assert library.began == 1


def test_an_xid_is_reported_once_with_its_gpu_and_at_once(looker: Make, node: Node) -> None:
    library = StandIn(Gpu(FIRST), Gpu(SECOND))
    seen = looker(library)
    seen.look()
    library.lost.add(SECOND)  # it does not return its UUID any more
    before = time.time()
    library.xids += [(SECOND, 79), ("GPU-unknown", 119)]
    until(lambda: len(node.woken) == 2)
    first, second = seen.look()["xids"]
    assert (first["xid"], first["uuid"]) == (79, SECOND)
    assert before <= first["at"] <= time.time()
    assert not {"gpu_instance", "compute_instance"} & set(first)
    assert (second["xid"], second.get("uuid")) == (119, None)
    assert seen.look()["xids"] == []


def test_xids_of_a_session_that_ended_are_reported(looker: Make, node: Node) -> None:
    library = StandIn(Gpu(FIRST))
    seen = looker(library)
    seen.look()
    library.xids.append((FIRST, 119))
    until(lambda: bool(node.woken))
    library.errors["nvmlDeviceGetUtilizationRates"] = pynvml.NVML_ERROR_UNINITIALIZED
    assert [xid["xid"] for xid in seen.look()["xids"]] == [119]


def test_a_failing_wait_for_xids_is_reported_and_does_not_spin(looker: Make) -> None:
    library = StandIn(Gpu(FIRST))
    library.errors["nvmlEventSetWait_v2"] = pynvml.NVML_ERROR_GPU_IS_LOST
    began = time.monotonic()
    seen = looker(library)
    until(lambda: {"code": "xids_unwatched", "detail": "gpu_is_lost"} in seen.look()["troubles"])
    time.sleep(0.1)
    assert library.called.count("nvmlEventSetWait_v2") <= 1 + (time.monotonic() - began) / 0.25
    library.errors.clear()
    until(lambda: codes(seen.look()) == set())
