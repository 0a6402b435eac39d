"""Simulated node for the agent: device files, processes in cgroups, and a stand-in for NVML."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from monitoring.agent import kubelet
from monitoring.agent.look import Looker
from monitoring.agent.schema import Look
from tests.monitoring.agent.receiver import Receiver
from tests.monitoring.agent.stand_in import StandIn, installed

Make = Callable[..., Looker]


def codes(report: Look) -> set[str]:
    """Return the codes of a report's problems. The simulated node has no kubelet."""
    return {trouble["code"] for trouble in report["troubles"]} - {"kubelet_silent"}


@dataclass
class Node:
    dev: Path
    proc: Path
    kubelet: Path
    woken: list[bool] = field(default_factory=list)

    def runs(self, pid: int, cgroup: str) -> None:
        (self.proc / str(pid)).mkdir()
        (self.proc / str(pid) / "cgroup").write_text(cgroup)

    def loads_driver(self, version: str = "570.86.15") -> None:
        (self.proc / "driver/nvidia").mkdir(parents=True)
        (self.proc / "driver/nvidia/version").write_text(
            f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  (dvs-builder)\n"
            "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
        )


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the timeout: a simulated kubelet on a loaded machine may be slow."""
    monkeypatch.setattr(kubelet, "TIMEOUT_SECONDS", 60)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Node with the device files of a healthy driver, and without a kubelet."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "proc").mkdir()
    for name in ("nvidiactl", "nvidia-uvm"):
        (tmp_path / "dev" / name).touch()
    return Node(tmp_path / "dev", tmp_path / "proc", tmp_path / "kubelet.sock")


@pytest.fixture
def looker(node: Node) -> Iterator[Make]:
    """Return a function that makes a Looker on a library. Close in order: no thread may call a removed library."""
    with ExitStack() as stack:

        def make(library: StandIn | None, pod: str = "") -> Looker:
            stack.enter_context(installed(library))
            made = Looker(node.dev, node.proc, node.kubelet, pod, on_xid=lambda: node.woken.append(True))
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()
