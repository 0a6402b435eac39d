"""Causes of missing GPU data: each known cause is reported by its code, and the agent stays up."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest

from monitoring.agent.look import Looker
from tests.monitoring.agent.codes import codes
from tests.monitoring.agent.conftest import Node
from tests.monitoring.agent.stand_in import Gpu, StandIn

Make = Callable[[StandIn | None], Looker]


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
    assert codes(report) == {"library_missing"}
    assert report["gpus"] == []


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
def test_nvml_that_does_not_begin(looker: Make, error: int, code: str) -> None:
    library = failing(error)
    seen = looker(library)
    assert codes(seen.look()) == {code}
    library.errors.clear()
    report = seen.look()
    assert (codes(report), len(report["gpus"])) == (set(), 1)


def test_versions_that_do_not_fit_name_the_one_that_is_loaded(looker: Make, node: Node) -> None:
    node.loads_driver("550.54.15")
    [mismatch, _] = looker(failing(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)).look()["troubles"]
    assert mismatch == {"code": "version_mismatch", "detail": "lib_rm_version_mismatch; driver 550.54.15"}


def test_a_driver_whose_device_files_did_not_come_into_the_container(looker: Make, node: Node) -> None:
    node.loads_driver()
    (node.dev / "nvidiactl").unlink()
    assert codes(looker(failing(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)).look()) == {"device_files_missing"}


@pytest.mark.parametrize("error", [pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_NO_PERMISSION])
def test_devices_lost_after_a_daemon_reload(
    looker: Make, node: Node, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    denies(monkeypatch, node.dev / "nvidiactl", errno.EPERM)
    assert codes(looker(failing(error)).look()) == {"devices_denied"}


def test_devices_lost_while_nvml_still_answers(
    looker: Make, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = looker(StandIn(Gpu()))
    assert codes(seen.look()) == set()
    denies(monkeypatch, node.dev / "nvidiactl", errno.EPERM)
    report = seen.look()
    assert codes(report) == {"devices_denied"}
    assert report["gpus"][0]["utilization_percent"] == 37


def test_file_modes_that_refuse_are_no_lost_devices(
    looker: Make, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    denies(monkeypatch, node.dev / "nvidiactl", errno.EACCES)
    assert codes(looker(failing(pynvml.NVML_ERROR_NO_PERMISSION)).look()) == {"no_permission"}


def test_cuda_that_cannot_start_for_want_of_a_device_file(looker: Make, node: Node) -> None:
    (node.dev / "nvidia-uvm").unlink()
    report = looker(StandIn(Gpu())).look()
    assert codes(report) == {"uvm_missing"}
    assert len(report["gpus"]) == 1


def test_a_driver_without_any_gpu(looker: Make) -> None:
    assert codes(looker(StandIn()).look()) == {"no_gpus"}


def test_a_kubelet_that_is_not_there(looker: Make) -> None:
    report = looker(StandIn(Gpu())).look()
    assert {"code": "kubelet_silent", "detail": "No such file or directory"} in report["troubles"]
    assert "holdings" not in report
