"""Series of dcgm-exporter become what an agent would have reported, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from monitoring.agent.schema import Batch, Report
from monitoring.dcgm.prometheus import Series
from monitoring.dcgm.translation import Known, batches
from monitoring.dcgm.xids import EarlierReading
from tests.monitoring.dcgm.told import (
    ACTIVE,
    ECC,
    FIRST,
    FREE,
    NOW,
    RESERVED,
    SECOND,
    USED,
    UTIL,
    XID_COUNT,
    XIDS,
    counted,
    labels,
    of,
    used_by,
)

NODES = frozenset({"gpu-1", "gpu-2"})
WORKSPACE = ("berth-demo", "ws-1-0")


def only(told: Mapping[str, list[Series]], **known: Any) -> tuple[Batch, Report]:
    (batch,) = batches(told, Known(NODES, **known), NOW)
    (report,) = batch["reports"]
    return batch, report


def users(report: Report) -> list[tuple[str, str, str]]:
    return [(holding["pod"], holding["container"], holding["device"]) for holding in report["holdings"]]


def test_a_gpu_is_told_as_its_agent_would() -> None:
    who = labels(**used_by("ws-1-0"))
    told = {
        UTIL: 97,
        "DCGM_FI_DEV_POWER_USAGE": 301.25,
        "DCGM_FI_DEV_GPU_TEMP": 61,
        "DCGM_FI_DEV_SM_CLOCK": 1410,
        "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0,
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 2,
        ECC: 1,
        USED: 40960,
        FREE: 40280,
        RESERVED: 319,
        XIDS: 0,
        ACTIVE: 0.5,
    }
    batch, report = only({metric: [of(who, value)] for metric, value in told.items()})
    assert (batch["node"], batch["agent"], report["taken_at"]) == ("gpu-1", "prometheus", NOW - 5)
    assert batch["inventory"] == {
        "driver_version": "550.144.03",
        "gpus": [
            {
                "index": 0,
                "uuid": FIRST,
                "name": "NVIDIA A100-SXM4-80GB",
                "memory_mib": 81559,
                "ecc": True,
                "pci_bus": "00000000:8d:00.0",
                "mig_devices": [],
            }
        ],
    }
    assert report["gpus"] == [
        {
            "uuid": FIRST,
            "state": "ok",
            "utilization_percent": 97,
            "power_watts": 301.25,
            "temperature_celsius": 61,
            "sm_clock_mhz": 1410,
            "row_remap_failed": False,
            "ecc_uncorrected_since_boot": 2,
            "last_xid": 0,
            "memory_used_mib": 40960,
        }
    ]
    assert users(report) == [("ws-1-0", "main", FIRST)]


@pytest.mark.parametrize("host", ["Hostname", "hostname", "node", "kubernetes_node"])
def test_both_spellings_of_the_host_name_its_node(host: str) -> None:
    batch, _ = only({UTIL: [of(labels(host=host), 5)]})
    assert batch["node"] == "gpu-1"


def test_a_host_with_its_domain_is_the_node_without() -> None:
    batch, _ = only({UTIL: [of(labels(node="gpu-2.lab.example.org"), 5)]})
    assert batch["node"] == "gpu-2"


def test_what_is_on_no_node_of_this_cluster_is_left() -> None:
    assert not list(batches({UTIL: [of(labels(node="elsewhere"), 5)]}, Known(NODES), NOW))


class TestWhoHasAGpu:
    def test_labels_that_prometheus_honours_count_too(self) -> None:
        told = {UTIL: [of(labels(**used_by("ws-1-0", prefix="")), 5)]}
        _, report = only(told, pods={WORKSPACE: "gpu-1"})
        assert users(report) == [("ws-1-0", "main", FIRST)]

    def test_the_exporter_itself_has_no_gpu(self) -> None:
        _, report = only({UTIL: [of(labels(), 0)]})
        assert report["holdings"] == []

    def test_where_pods_with_gpus_run_and_none_is_told_the_exporter_does_not_know(self) -> None:
        _, report = only({UTIL: [of(labels(), 0)]}, pods={WORKSPACE: "gpu-1"})
        assert "holdings" not in report

    def test_several_on_one_gpu_share_it_and_its_figures_are_never_summed(self) -> None:
        pods = [labels(**used_by(f"ws-{n}-0", vgpu=str(n))) for n in (1, 2)]
        _, report = only({UTIL: [of(who, 60) for who in pods], USED: [of(who, 9000) for who in pods]})
        (sample,) = report["gpus"]
        assert (sample["utilization_percent"], sample["memory_used_mib"]) == (60, 9000)
        assert users(report) == [("ws-1-0", "main", f"{FIRST}::1"), ("ws-2-0", "main", f"{FIRST}::2")]

    def test_what_each_pod_takes_of_it_is_not_the_whole(self) -> None:
        """Check the form of exporters from 4.6 on."""
        pods = [labels(**used_by(f"ws-{n}-0", vgpu=str(n), pod_uid=str(n))) for n in (1, 2)]
        use = [of(pods[0], 20), of(labels(), 60), of(pods[1], 40)]
        _, report = only({UTIL: use, "DCGM_FI_DEV_GPU_TEMP": [of(who, 70) for who in pods]})
        (sample,) = report["gpus"]
        assert (sample["utilization_percent"], sample["temperature_celsius"]) == (60, 70)
        assert len(report["holdings"]) == 2

    def test_of_hamis_pods_the_exporter_knows_another_gpu(self) -> None:
        told = {UTIL: [of(labels(**used_by("ws-1-0")), 5)]}
        _, report = only(told, pods={WORKSPACE: "gpu-1"}, by_hami=frozenset({WORKSPACE}))
        assert users(report) == [("ws-1-0", "", "")]
        assert "uuid" not in report["holdings"][0]

    def test_the_series_of_a_pod_that_ended_lives_on_and_does_not_count(self) -> None:
        before, after = labels(**used_by("ws-1-0")), labels(**used_by("ws-2-0"))
        _, report = only({UTIL: [of(before, 99, ago=20), of(after, 3)]})
        assert report["gpus"][0]["utilization_percent"] == 3
        assert users(report) == [("ws-2-0", "main", FIRST)]

    def test_a_gpu_that_became_free_has_nobody(self) -> None:
        _, report = only({UTIL: [of(labels(**used_by("ws-1-0")), 99, ago=20), of(labels(), 0)]})
        assert report["holdings"] == []


class TestMig:
    def test_an_instance_has_the_use_that_profiling_tells(self) -> None:
        parts = [
            labels(GPU_I_ID=number, GPU_I_PROFILE="1g.10gb", **used_by(f"ws-{number}-0")) for number in "78"
        ]
        batch, report = only(
            {
                ACTIVE: [of(parts[0], 0.254), of(parts[1], 0)],
                UTIL: [of(parts[0], 88)],
                USED: [of(parts[0], 4096)],
                "DCGM_FI_DEV_GPU_TEMP": [of(parts[0], 44)],
            }
        )
        (facts,) = batch["inventory"]["gpus"]
        assert facts["mig"]
        assert facts["mig_devices"][0] == {
            "uuid": f"MIG-{FIRST}/7/0",
            "gpu_instance": 7,
            "name": "MIG 1g.10gb",
        }
        assert report["gpus"] == [
            {
                "uuid": FIRST,
                "state": "ok",
                "temperature_celsius": 44,
                "mig": [
                    {"uuid": f"MIG-{FIRST}/7/0", "memory_used_mib": 4096, "utilization_percent": 25},
                    {"uuid": f"MIG-{FIRST}/8/0", "utilization_percent": 0},
                ],
            }
        ]
        assert [holding["uuid"] for holding in report["holdings"]] == [f"MIG-{FIRST}/{n}/0" for n in "78"]


class TestEcc:
    @pytest.mark.parametrize(("value", "told"), [(1, True), (0, False)])
    def test_its_mode_is_a_fact_of_the_gpu(self, value: float, told: bool) -> None:
        (facts,) = only({ECC: [of(labels(), value)]})[0]["inventory"]["gpus"]
        assert facts["ecc"] is told

    @pytest.mark.parametrize(
        "series", [[], [of(labels(), 9223372036854775794)]], ids=["absent", "no support"]
    )
    def test_what_is_not_told_is_not_off(self, series: list[Series]) -> None:
        (facts,) = only({UTIL: [of(labels(), 5)], ECC: series})[0]["inventory"]["gpus"]
        assert "ecc" not in facts


def xids(told: Mapping[str, list[Series]], seen: EarlierReading | None = None) -> list[tuple[int, float]]:
    """Return (Xid, seconds ago)."""
    _, report = only(told, xids={FIRST: seen} if seen else {})
    assert all(xid["uuid"] == FIRST for xid in report["xids"])
    return [(xid["xid"], NOW - xid["at"]) for xid in report["xids"]]


class TestTheLastXid:
    """Gauge of the last Xid."""

    def test_one_is_told_when_another_number_comes_to_stand_there(self) -> None:
        assert xids({XIDS: [of(labels(), 0, 0, 79, 79)]}, EarlierReading(NOW - 100, last=0)) == [(79, 20)]

    def test_what_was_told_before_is_not_told_again(self) -> None:
        told = {XIDS: [of(labels(), 0, 79, 79, 79)]}
        assert xids(told, EarlierReading(NOW - 20, last=79)) == []

    def test_what_an_agent_told_before_it_fell_silent_is_not_told_again(self) -> None:
        told = {XIDS: [of(labels(), 0, 79, 79, 31)]}
        assert xids(told, EarlierReading(NOW - 20)) == [(31, 5)]

    def test_what_stands_there_at_the_first_look_may_be_of_any_time(self) -> None:
        assert xids({XIDS: [of(labels(), 79, 79)]}) == []
        assert xids({XIDS: [of(labels(), 79, 31)]}) == [(31, 5)]

    def test_one_that_is_taken_back_is_none(self) -> None:
        assert xids({XIDS: [of(labels(), 79, 0)]}, EarlierReading(NOW - 100, last=79)) == []

    def test_a_shared_gpu_tells_it_once(self) -> None:
        pods = [labels(**used_by(f"ws-{n}-0", vgpu=str(n))) for n in (1, 2)]
        assert xids({XIDS: [of(who, 0, 31) for who in pods]}, EarlierReading(NOW - 100, last=0)) == [(31, 5)]


class TestCountedXids:
    """Gauge of the number of Xids within the last minutes, by Xid."""

    def test_the_same_twice_is_seen_twice(self) -> None:
        told = {XIDS: [of(labels(), 31, 31, 31, 31)], XID_COUNT: [of(counted(31), 1, 1, 2, 3)]}
        assert xids(told, EarlierReading(NOW - 45, counts={31: 1})) == [(31, 20), (31, 5)]

    def test_one_ages_while_another_comes(self) -> None:
        told = {XID_COUNT: [of(counted(31), 2, 1, 1, 2), of(counted(79), 1)]}
        assert xids(told, EarlierReading(NOW - 50, counts={31: 2})) == [(31, 5), (79, 5)]

    def test_the_first_is_new_where_there_were_none(self) -> None:
        told = {XID_COUNT: [of(counted(), 0, 0, ago=20), of(counted(48), 1)]}
        assert xids(told) == xids(told, EarlierReading(NOW - 30, counts={})) == [(48, 5)]

    def test_an_exporter_that_starts_anew_counts_from_nothing(self) -> None:
        before, after = counted(31), counted(31, pod="nvidia-dcgm-exporter-b7x2c")
        told = [of(before, 3, 3, ago=50), of(counted(pod="nvidia-dcgm-exporter-b7x2c"), 0, ago=35)]
        assert xids({XID_COUNT: [*told, of(after, 1, 1)]}, EarlierReading(NOW - 60, counts={31: 3})) == [
            (31, 20)
        ]

    def test_what_was_told_before_is_not_told_again(self) -> None:
        told = {XID_COUNT: [of(counted(79), 1, 1, 1)]}
        assert xids(told, EarlierReading(NOW - 200, counts={79: 1})) == []

    def test_after_a_long_silence_all_that_is_counted_is_new(self) -> None:
        told = {XID_COUNT: [of(counted(79), 1, 1, 1)]}
        assert xids(told, EarlierReading(NOW - 400, counts={79: 1})) == [(79, 35)]

    def test_what_stands_there_at_the_first_look_is_not_told(self) -> None:
        told = {XID_COUNT: [of(counted(79), 1, 1)]}
        assert xids(told) == xids(told, EarlierReading(NOW - 100, last=79)) == []

    def test_instances_of_one_gpu_tell_it_once(self) -> None:
        parts = [counted(31, GPU_I_ID=number, GPU_I_PROFILE="1g.10gb") for number in "78"]
        assert xids({XID_COUNT: [of(part, 1, 2) for part in parts]}) == [(31, 5)]

    @pytest.mark.parametrize("number", ["", "0", "x", "9" * 900])
    def test_what_is_no_xid_is_left(self, number: str) -> None:
        told = {XID_COUNT: [of(labels(xid=number), 1, 2)]}
        assert xids(told) == []

    def test_what_was_counted_is_kept_for_the_next_look(self) -> None:
        _, report = only({XID_COUNT: [of(counted(79), 1), of(counted(31), 2), of(counted(8), 1, ago=20)]})
        assert report["gpus"][0]["xid_counts"] == [{"xid": 31, "count": 2}, {"xid": 79, "count": 1}]
        assert "xid_counts" not in only({UTIL: [of(labels(), 1)]})[1]["gpus"][0]


class TestWhatIsNoFigure:
    @pytest.mark.parametrize("value", [-1, 2147483632, 1.8446744073709552e19, 9.22e18])
    def test_dcgms_blanks_are_none(self, value: float) -> None:
        _, report = only({UTIL: [of(labels(), value)], USED: [of(labels(), 10)]})
        assert "utilization_percent" not in report["gpus"][0]

    def test_a_metric_that_fell_silent_is_of_before(self) -> None:
        _, report = only({UTIL: [of(labels(), 99, ago=60)], USED: [of(labels(), 10)]})
        assert "utilization_percent" not in report["gpus"][0]

    def test_a_gpu_that_fell_silent_keeps_its_place_and_tells_nothing(self) -> None:
        batch, report = only({UTIL: [of(labels(), 1), of(labels(SECOND), 2, ago=60)]})
        assert [gpu["uuid"] for gpu in report["gpus"]] == [FIRST]
        assert [gpu["uuid"] for gpu in batch["inventory"]["gpus"]] == [FIRST, SECOND]

    def test_without_utilisation_profiling_tells_it(self) -> None:
        _, report = only({ACTIVE: [of(labels(), 0.999)]})
        assert report["gpus"][0]["utilization_percent"] == 100

    def test_memory_stays_the_same_though_its_parts_are_rounded(self) -> None:
        told = {USED: [of(labels(), 1000)], FREE: [of(labels(), 80558)]}
        assert only(told, memory_mib={FIRST: 81559})[0]["inventory"]["gpus"][0]["memory_mib"] == 81559
        assert only(told, memory_mib={FIRST: 40960})[0]["inventory"]["gpus"][0]["memory_mib"] == 81558

    def test_a_series_without_a_name_of_its_gpu_is_of_none(self) -> None:
        assert not list(batches({UTIL: [of({"Hostname": "gpu-1"}, 4)]}, Known(NODES), NOW))

    def test_nothing_is_made_of_nothing(self) -> None:
        assert not list(batches({UTIL: [Series(labels(), [])], XIDS: []}, Known(NODES), NOW))


def test_nodes_are_told_apart_and_a_scrape_has_one_number() -> None:
    told = {UTIL: [of(labels(), 1), of(labels(SECOND, node="gpu-2"), 2, ago=9)]}
    found = list(batches(told, Known(NODES), NOW))
    assert [batch["node"] for batch in found] == ["gpu-1", "gpu-2"]
    sequences = [batch["reports"][0]["sequence"] for batch in found]
    assert sequences == [math.floor((NOW - 5) * 1000), math.floor((NOW - 9) * 1000)]
