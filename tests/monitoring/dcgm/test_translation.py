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
from tests.monitoring.dcgm.exported import (
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


def test_a_gpu_is_reported_as_by_an_agent() -> None:
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


@pytest.mark.parametrize(
    ("of_host", "nodes"),
    [
        *(({"host": label}, ["gpu-1"]) for label in ("Hostname", "hostname", "node", "kubernetes_node")),
        ({"node": "gpu-2.lab.example.org"}, ["gpu-2"]),  # with its domain
        ({"node": "elsewhere"}, []),
    ],
)
def test_the_host_names_the_node(of_host: dict[str, str], nodes: list[str]) -> None:
    found = batches({UTIL: [of(labels(**of_host), 5)]}, Known(NODES), NOW)
    assert [batch["node"] for batch in found] == nodes


class TestWhoHasAGpu:
    def test_honoured_labels_name_the_user(self) -> None:
        told = {UTIL: [of(labels(**used_by("ws-1-0", prefix="")), 5)]}
        _, report = only(told, pods={WORKSPACE: "gpu-1"})
        assert users(report) == [("ws-1-0", "main", FIRST)]

    def test_the_exporter_itself_has_no_gpu(self) -> None:
        _, report = only({UTIL: [of(labels(), 0)]})
        assert report["holdings"] == []

    def test_an_exporter_that_names_no_pod_is_not_believed_if_pods_have_gpus(self) -> None:
        _, report = only({UTIL: [of(labels(), 0)]}, pods={WORKSPACE: "gpu-1"})
        assert "holdings" not in report

    def test_figures_of_a_shared_gpu_are_never_summed(self) -> None:
        pods = [labels(**used_by(f"ws-{n}-0", vgpu=str(n))) for n in (1, 2)]
        _, report = only({UTIL: [of(who, 60) for who in pods], USED: [of(who, 9000) for who in pods]})
        (sample,) = report["gpus"]
        assert (sample["utilization_percent"], sample["memory_used_mib"]) == (60, 9000)
        assert users(report) == [("ws-1-0", "main", f"{FIRST}::1"), ("ws-2-0", "main", f"{FIRST}::2")]

    def test_a_pods_own_part_is_not_the_whole(self) -> None:
        """Check the form of exporters from 4.6 on."""
        pods = [labels(**used_by(f"ws-{n}-0", vgpu=str(n), pod_uid=str(n))) for n in (1, 2)]
        use = [of(pods[0], 20), of(labels(), 60), of(pods[1], 40)]
        _, report = only({UTIL: use, "DCGM_FI_DEV_GPU_TEMP": [of(who, 70) for who in pods]})
        (sample,) = report["gpus"]
        assert (sample["utilization_percent"], sample["temperature_celsius"]) == (60, 70)
        assert len(report["holdings"]) == 2

    def test_hamis_pods_are_reported_without_a_gpu(self) -> None:
        told = {UTIL: [of(labels(**used_by("ws-1-0")), 5)]}
        _, report = only(told, pods={WORKSPACE: "gpu-1"}, by_hami=frozenset({WORKSPACE}))
        assert users(report) == [("ws-1-0", "", "")]
        assert "uuid" not in report["holdings"][0]

    def test_a_series_of_an_ended_pod_does_not_count(self) -> None:
        before, after = labels(**used_by("ws-1-0")), labels(**used_by("ws-2-0"))
        _, report = only({UTIL: [of(before, 99, ago=20), of(after, 3)]})
        assert report["gpus"][0]["utilization_percent"] == 3
        assert users(report) == [("ws-2-0", "main", FIRST)]

    def test_a_gpu_that_became_free_has_no_holder(self) -> None:
        _, report = only({UTIL: [of(labels(**used_by("ws-1-0")), 99, ago=20), of(labels(), 0)]})
        assert report["holdings"] == []


class TestMig:
    def test_an_instance_has_the_use_from_profiling(self) -> None:
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


@pytest.mark.parametrize(
    ("series", "ecc"),
    [
        ([of(labels(), 1)], True),
        ([of(labels(), 0)], False),
        ([of(labels(), 9223372036854775794)], None),  # not supported
        ([], None),
    ],
)
def test_ecc_is_a_fact_of_the_gpu_if_known(series: list[Series], ecc: bool | None) -> None:
    (facts,) = only({UTIL: [of(labels(), 5)], ECC: series})[0]["inventory"]["gpus"]
    assert facts.get("ecc") is ecc


def xids(told: Mapping[str, list[Series]], seen: EarlierReading | None = None) -> list[tuple[int, float]]:
    """Return (Xid, seconds ago)."""
    _, report = only(told, xids={FIRST: seen} if seen else {})
    assert all(xid["uuid"] == FIRST for xid in report["xids"])
    return [(xid["xid"], NOW - xid["at"]) for xid in report["xids"]]


LAST_79 = [of(labels(), 0, 79, 79, 79)]
LAST_XIDS: dict[str, tuple[list[Series], EarlierReading | None, list[tuple[int, float]]]] = {
    "another number": ([of(labels(), 0, 0, 79, 79)], EarlierReading(NOW - 100, last=0), [(79, 20)]),
    "seen before": (LAST_79, EarlierReading(NOW - 20, last=79), []),
    "after an agent's reports": ([of(labels(), 0, 79, 79, 31)], EarlierReading(NOW - 20), [(31, 5)]),
    "of unknown age at the first reading": ([of(labels(), 79, 79)], None, []),
    "changed at the first reading": ([of(labels(), 79, 31)], None, [(31, 5)]),
    "reset": ([of(labels(), 79, 0)], EarlierReading(NOW - 100, last=79), []),
    "once for a shared GPU": (
        [of(labels(**used_by(f"ws-{n}-0", vgpu=str(n))), 0, 31) for n in (1, 2)],
        EarlierReading(NOW - 100, last=0),
        [(31, 5)],
    ),
}


@pytest.mark.parametrize(("series", "seen", "new"), LAST_XIDS.values(), ids=LAST_XIDS)
def test_new_xids_by_the_gauge_of_the_last(
    series: list[Series], seen: EarlierReading | None, new: list[tuple[int, float]]
) -> None:
    assert xids({XIDS: series}, seen) == new


RESTARTED = "nvidia-dcgm-exporter-b7x2c"
FIRST_48 = [of(counted(), 0, 0, ago=20), of(counted(48), 1)]
COUNTED_79 = [of(counted(79), 1, 1, 1)]
COUNTED_XIDS: dict[str, tuple[list[Series], EarlierReading | None, list[tuple[int, float]]]] = {
    "one ages while another comes": (
        [of(counted(31), 2, 1, 1, 2), of(counted(79), 1)],
        EarlierReading(NOW - 50, counts={31: 2}),
        [(31, 5), (79, 5)],
    ),
    "the first after none, at the first reading": (FIRST_48, None, [(48, 5)]),
    "the first after none": (FIRST_48, EarlierReading(NOW - 30, counts={}), [(48, 5)]),
    "a restarted exporter counts from 0": (
        [
            of(counted(31), 3, 3, ago=50),
            of(counted(pod=RESTARTED), 0, ago=35),
            of(counted(31, pod=RESTARTED), 1, 1),
        ],
        EarlierReading(NOW - 60, counts={31: 3}),
        [(31, 20)],
    ),
    "seen before": (COUNTED_79, EarlierReading(NOW - 200, counts={79: 1}), []),
    "all are new after a long silence": (COUNTED_79, EarlierReading(NOW - 400, counts={79: 1}), [(79, 35)]),
    "of unknown age at the first reading": (COUNTED_79, None, []),
    "of unknown age at the first reading of counts": (COUNTED_79, EarlierReading(NOW - 100, last=79), []),
    "once for all instances of a GPU": (
        [of(counted(31, GPU_I_ID=number, GPU_I_PROFILE="1g.10gb"), 1, 2) for number in "78"],
        None,
        [(31, 5)],
    ),
    **{
        f"no Xid: {number[:1]}": ([of(labels(xid=number), 1, 2)], None, [])
        for number in ("", "0", "x", "9" * 900)
    },
}


@pytest.mark.parametrize(("series", "seen", "new"), COUNTED_XIDS.values(), ids=COUNTED_XIDS)
def test_new_xids_by_the_gauge_of_recent_counts(
    series: list[Series], seen: EarlierReading | None, new: list[tuple[int, float]]
) -> None:
    assert xids({XID_COUNT: series}, seen) == new


def test_counts_show_the_same_xid_twice() -> None:
    series = {XIDS: [of(labels(), 31, 31, 31, 31)], XID_COUNT: [of(counted(31), 1, 1, 2, 3)]}
    assert xids(series, EarlierReading(NOW - 45, counts={31: 1})) == [(31, 20), (31, 5)]


def test_counts_are_kept_for_the_next_reading() -> None:
    _, report = only({XID_COUNT: [of(counted(79), 1), of(counted(31), 2), of(counted(8), 1, ago=20)]})
    assert report["gpus"][0]["xid_counts"] == [{"xid": 31, "count": 2}, {"xid": 79, "count": 1}]
    assert "xid_counts" not in only({UTIL: [of(labels(), 1)]})[1]["gpus"][0]


class TestFigures:
    @pytest.mark.parametrize(
        ("value", "ago"), [(-1, 5), (2147483632, 5), (1.8446744073709552e19, 5), (9.22e18, 5), (99, 60)]
    )
    def test_a_blank_of_dcgm_or_an_old_sample_is_left_out(self, value: float, ago: float) -> None:
        _, report = only({UTIL: [of(labels(), value, ago=ago)], USED: [of(labels(), 10)]})
        assert "utilization_percent" not in report["gpus"][0]

    def test_a_silent_gpu_stays_in_the_inventory_without_a_sample(self) -> None:
        batch, report = only({UTIL: [of(labels(), 1), of(labels(SECOND), 2, ago=60)]})
        assert [gpu["uuid"] for gpu in report["gpus"]] == [FIRST]
        assert [gpu["uuid"] for gpu in batch["inventory"]["gpus"]] == [FIRST, SECOND]

    def test_profiling_stands_in_for_absent_utilization(self) -> None:
        _, report = only({ACTIVE: [of(labels(), 0.999)]})
        assert report["gpus"][0]["utilization_percent"] == 100

    def test_memory_stays_the_same_though_its_parts_are_rounded(self) -> None:
        told = {USED: [of(labels(), 1000)], FREE: [of(labels(), 80558)]}
        assert only(told, memory_mib={FIRST: 81559})[0]["inventory"]["gpus"][0]["memory_mib"] == 81559
        assert only(told, memory_mib={FIRST: 40960})[0]["inventory"]["gpus"][0]["memory_mib"] == 81558

    @pytest.mark.parametrize("series", [of({"Hostname": "gpu-1"}, 4), Series(labels(), [])])
    def test_a_series_without_a_uuid_or_a_sample_makes_no_batch(self, series: Series) -> None:
        assert not list(batches({UTIL: [series], XIDS: []}, Known(NODES), NOW))


def test_each_node_has_a_batch_numbered_by_its_scrape() -> None:
    told = {UTIL: [of(labels(), 1), of(labels(SECOND, node="gpu-2"), 2, ago=9)]}
    found = list(batches(told, Known(NODES), NOW))
    assert [batch["node"] for batch in found] == ["gpu-1", "gpu-2"]
    sequences = [batch["reports"][0]["sequence"] for batch in found]
    assert sequences == [math.floor((NOW - 5) * 1000), math.floor((NOW - 9) * 1000)]
