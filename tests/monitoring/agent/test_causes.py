"""Causes of missing GPU data: each known cause is reported by its code, and the agent stays up."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pynvml
import pytest

from tests.monitoring.agent.conftest import Make, Node, codes
from tests.monitoring.agent.stand_in import Gpu, StandIn


def failing(code: int) -> StandIn:
    library = StandIn(Gpu())
    library.errors["nvmlInitWithFlags"] = code
    return library


def denies(monkeypatch: pytest.MonkeyPatch, path: Path, error: int) -> None:
    """Refuse to open the path, as a device cgroup does: a test may not set up a cgroup."""
    opening = os.open

    def refuse(wanted: Any, *arguments: Any, **named: Any) -> int:
        if wanted == path:
            raise OSError(error, os.strerror(error))
        return opening(wanted, *arguments, **named)

    monkeypatch.setattr(os, "open", refuse)


def test_without_the_library(looker: Make) -> None:
    report = looker(None).look()
    assert (codes(report), report["gpus"]) == ({"library_missing"}, [])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "driver_not_loaded"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "version_mismatch"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "no_permission"),
        (pynvml.NVML_ERROR_GPU_IS_LOST, "gpu_lost"),
        (pynvml.NVML_ERROR_UNKNOWN, "nvml_failed"),
        (4711, "nvml_failed"),
    ],
)
def test_an_error_of_nvmls_start_is_reported_until_it_is_over(looker: Make, error: int, code: str) -> None:
    library = failing(error)
    seen = looker(library)
    assert codes(seen.look()) == {code}
    library.errors.clear()
    report = seen.look()
    assert (codes(report), len(report["gpus"])) == (set(), 1)


def test_a_version_mismatch_names_the_loaded_version(looker: Make, node: Node) -> None:
    node.loads_driver("550.54.15")
    [mismatch, _] = looker(failing(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)).look()["troubles"]
    assert mismatch == {"code": "version_mismatch", "detail": "lib_rm_version_mismatch; driver 550.54.15"}


def test_a_loaded_driver_without_device_files_in_the_container(looker: Make, node: Node) -> None:
    node.loads_driver()
    (node.dev / "nvidiactl").unlink()
    assert codes(looker(failing(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)).look()) == {"device_files_missing"}


@pytest.mark.parametrize(
    ("error", "opening", "code"),
    [
        (pynvml.NVML_ERROR_UNKNOWN, errno.EPERM, "devices_denied"),
        (pynvml.NVML_ERROR_NO_PERMISSION, errno.EPERM, "devices_denied"),
        (pynvml.NVML_ERROR_NO_PERMISSION, errno.EACCES, "no_permission"),  # by file modes, not by a cgroup
    ],
)
def test_devices_lost_after_a_daemon_reload(
    looker: Make, node: Node, monkeypatch: pytest.MonkeyPatch, error: int, opening: int, code: str
) -> None:
    denies(monkeypatch, node.dev / "nvidiactl", opening)
    assert codes(looker(failing(error)).look()) == {code}


def test_devices_lost_while_nvml_still_answers(
    looker: Make, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = looker(StandIn(Gpu()))
    assert codes(seen.look()) == set()
    denies(monkeypatch, node.dev / "nvidiactl", errno.EPERM)
    report = seen.look()
    assert codes(report) == {"devices_denied"}
    assert report["gpus"][0]["utilization_percent"] == 37


def test_without_the_uvm_device_file_gpus_are_seen_all_the_same(looker: Make, node: Node) -> None:
    (node.dev / "nvidia-uvm").unlink()
    report = looker(StandIn(Gpu())).look()
    assert (codes(report), len(report["gpus"])) == ({"uvm_missing"}, 1)


def test_a_driver_without_any_gpu(looker: Make) -> None:
    assert codes(looker(StandIn()).look()) == {"no_gpus"}


def test_a_kubelet_that_is_not_there(looker: Make) -> None:
    report = looker(StandIn(Gpu())).look()
    assert {"code": "kubelet_silent", "detail": "No such file or directory"} in report["troubles"]
    assert "holdings" not in report
