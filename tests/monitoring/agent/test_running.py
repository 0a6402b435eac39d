"""Threads of the agent together: a problem of one does not stop the others."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from devcluster.testing.waiting import until
from monitoring.agent import inventory, running
from monitoring.agent.kubelet import Given
from monitoring.agent.running import Agent, Settings
from tests.monitoring.agent.conftest import Node
from tests.monitoring.agent.receiver import Receiver
from tests.monitoring.agent.stand_in import FIRST, Gpu, StandIn, installed


@pytest.fixture
def start(node: Node, receiver: Receiver, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    (tmp_path / "token").write_text("secret")

    @contextmanager
    def started(library: StandIn | None, **changes: Any) -> Iterator[int]:
        """Run an agent that looks ten times a second. Yield the port of its metrics."""
        settings = Settings(
            node="gpu-1",
            interval_seconds=0.1,
            dev=node.dev,
            proc=node.proc,
            kubelet=node.kubelet,
            pod="",
            portal=receiver.address,
            token_file=tmp_path / "token",
            ca_file=None,
            listen=("127.0.0.1", 0),
        )._replace(**changes)
        over = threading.Event()
        with installed(library):
            agent = Agent(settings)
            thread = threading.Thread(target=agent.run, args=(over.wait,))
            thread.start()
            try:
                assert agent._server
                yield agent._server.server_address[1]
            finally:
                over.set()
                if library:
                    library.hanging = None
                thread.join(20)
                assert not thread.is_alive()
                until(lambda: not {"_looks", "_pushes", "_serves", "xids"} & set(thread_names()))

    yield started


def thread_names() -> list[str]:
    return [thread.name for thread in threading.enumerate()]


def codes(receiver: Receiver) -> set[str]:
    """Return the codes of problems in the newest report."""
    newest = [batch["reports"][-1] for batch in receiver.taken[-1:]]
    return {trouble["code"] for report in newest for trouble in report["troubles"]}


def xids(receiver: Receiver) -> list[dict[str, Any]]:
    return [xid for batch in receiver.taken for report in batch["reports"] for xid in report["xids"]]


def metrics(port: int, path: str = "/metrics", host: str = "127.0.0.1") -> tuple[int, str]:
    connection = http.client.HTTPConnection(host, port, timeout=20)
    connection.request("GET", path)
    response = connection.getresponse()
    told = response.status, response.read().decode()
    connection.close()
    return told


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LEAST_SECONDS", 0.01)
    monkeypatch.setattr(running, "LEAVING_SECONDS", 0.05)


def test_it_looks_pushes_and_serves(start: Any, receiver: Receiver) -> None:
    library = StandIn(Gpu(FIRST))
    with start(library) as port:
        until(lambda: len(receiver.sequences()) >= 3)
        library.xids.append((FIRST, 79))
        until(lambda: 'berth_gpu_xids_total{uuid="' in metrics(port)[1])
        assert metrics(port, "/other")[0] == 404
    batch = receiver.taken[-1]
    assert batch["inventory"]["gpus"][0]["uuid"] == FIRST
    assert batch["reports"][0]["gpus"][0]["utilization_percent"] == 37
    assert receiver.sequences() == sorted(set(receiver.sequences()))


def test_without_nvml_it_stays_up_and_says_why(start: Any, receiver: Receiver) -> None:
    with start(None) as port:
        until(lambda: len(receiver.sequences()) >= 2)
        assert 'berth_agent_trouble{code="library_missing"}' in metrics(port)[1]
    assert codes(receiver) == {"library_missing", "kubelet_silent"}


def test_a_driver_that_hangs_is_reported_by_another_thread(
    start: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "HANGS_AFTER_SECONDS", 0.2)
    library = StandIn(Gpu(FIRST))
    released = threading.Event()
    with start(library) as port:
        until(receiver.sequences)
        library.hanging = released.wait
        until(lambda: "nvml_hangs" in codes(receiver))
        assert metrics(port)[0] == 200
        library.hanging = None
        released.set()
        until(lambda: "nvml_hangs" not in codes(receiver))


def test_a_delayed_look_is_numbered_after_the_reports_made_meanwhile(
    start: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "HANGS_AFTER_SECONDS", 0.1)
    released = threading.Event()

    def slowly(_: Path, pod: str) -> list[Given]:
        released.wait(20)
        return []

    monkeypatch.setattr("monitoring.agent.look.given_devices", slowly)
    with start(StandIn(Gpu(FIRST))):
        until(lambda: "nvml_hangs" in codes(receiver))
        released.set()
        until(lambda: "nvml_hangs" not in codes(receiver))
    assert receiver.sequences() == sorted(set(receiver.sequences()))


def test_xids_are_reported_while_the_driver_hangs(
    start: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "HANGS_AFTER_SECONDS", 0.2)
    library = StandIn(Gpu(FIRST))
    hangs, released = threading.Event(), threading.Event()

    def hang_in_a_look() -> None:
        if threading.current_thread().name == "_looks":
            hangs.set()
            released.wait()

    with start(library) as port:
        until(receiver.sequences)
        library.hanging = hang_in_a_look
        until(hangs.is_set)
        until(lambda: "nvml_hangs" in codes(receiver))
        library.xids.append((FIRST, 79))
        until(lambda: 'xid="79"} 1' in metrics(port)[1])
        until(lambda: xids(receiver))
        assert "nvml_hangs" in codes(receiver)
        library.hanging = None
        released.set()


def test_a_fault_of_our_own_is_reported_and_the_next_look_is_made(
    start: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(StandIn(Gpu(FIRST))):
        until(receiver.sequences)
        with monkeypatch.context() as broken:
            broken.setattr("monitoring.agent.samples.take", lambda *_: inventory.nothing_of_the_kind)  # type: ignore[attr-defined]
            until(lambda: "agent_failed" in codes(receiver))
        until(lambda: "agent_failed" not in codes(receiver))


def test_a_storm_of_xids_makes_no_storm_of_looks(
    start: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "LEAST_SECONDS", 0.25)
    library = StandIn(Gpu(FIRST))
    with start(library, interval_seconds=60):
        until(receiver.sequences)
        began = time.monotonic()
        library.xids += [(FIRST, 13)] * 300
        until(lambda: not library.xids)
        until(lambda: len(xids(receiver)) == 300)
        looks = len(receiver.sequences())
        assert looks <= 2 + (time.monotonic() - began) / 0.25


def test_a_silent_client_delays_metrics_only(start: Any, receiver: Receiver) -> None:
    with start(StandIn(Gpu(FIRST))) as port, socket.create_connection(("127.0.0.1", port)) as silent:
        seen = len(receiver.sequences())
        until(lambda: len(receiver.sequences()) >= seen + 3)
        with suppress(OSError):
            silent.shutdown(socket.SHUT_RDWR)


def test_an_endless_request_delays_metrics_only_for_a_while(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SCRAPE_SECONDS", 0.1)
    over = threading.Event()
    with start(StandIn(Gpu(FIRST))) as port, socket.create_connection(("127.0.0.1", port)) as slow:

        def drip() -> None:
            with suppress(OSError):
                while not over.wait(0.02):
                    slow.sendall(b"G")

        def answered() -> bool:
            with suppress(OSError, http.client.HTTPException):  # a slow machine is cut off, too
                return metrics(port)[0] == 200
            return False

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            until(answered)
        finally:
            over.set()
            thread.join()


def test_metrics_over_ipv6(start: Any) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with start(None, listen=("::1", 0)) as port:
        assert metrics(port, host="::1")[0] == 200
