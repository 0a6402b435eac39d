"""Devices by container, from a real gRPC server, and from servers that break off, lie or never end."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from monitoring.agent import kubelet
from monitoring.agent.kubelet import Given, given_devices, read_answer
from monitoring.agent.unary import CallFailed
from tests.monitoring.agent.conftest import Make, Node
from tests.monitoring.agent.simulated_kubelet import MESSAGES, answer, container, serving
from tests.monitoring.agent.stand_in import FIRST, Gpu, StandIn


def test_devices_are_reported_also_without_a_process(looker: Make, node: Node) -> None:
    pods = answer(
        ("berth-lab", "ws-1-0", [container("notebook", ("nvidia.com/gpu", [FIRST]), ("rdma/hca", ["3"]))]),
        ("kube-system", "dns", [container("coredns")]),
    )
    with serving(node.kubelet, lambda _: pods):
        report = looker(StandIn(Gpu(FIRST))).look()
    assert report["troubles"] == []
    pod = {"namespace": "berth-lab", "pod": "ws-1-0", "container": "notebook"}
    assert report["holdings"] == [pod | {"resource": "nvidia.com/gpu", "device": FIRST, "uuid": FIRST}]


@pytest.mark.parametrize(
    "known",
    [[], [("kube-system", "proxy-of-the-node", [container("proxy")])]],
    ids=["no pods", "static pods"],
)
def test_an_answer_without_the_agents_own_pod_does_not_count(
    looker: Make, node: Node, known: list[Any]
) -> None:
    """A restarted kubelet answers for a second or more without the API's pods."""
    ours = ("berth-agent", "berth-agent-x7k2p", [container("agent")])
    with serving(node.kubelet, lambda _: answer(*known)):
        report = looker(StandIn(Gpu(FIRST)), pod="berth-agent-x7k2p").look()
    assert "holdings" not in report
    assert report["troubles"] == [{"code": "kubelet_silent", "detail": "it does not know its pods yet"}]
    with serving(node.kubelet, lambda _: answer(*known, ours)):
        report = looker(StandIn(Gpu(FIRST)), pod="berth-agent-x7k2p").look()
    assert (report["holdings"], report["troubles"]) == ([], [])


def test_devices_are_sorted_as_the_kubelet_has_no_order(tmp_path: Path) -> None:
    pods = [("lab", name, [container("main", ("nvidia.com/gpu", [f"GPU-{name}"]))]) for name in "abc"]
    for order in (pods, pods[::-1]):
        whole = answer(*order)
        with serving(tmp_path / "sock", lambda _, whole=whole: whole):  # type: ignore[misc]
            assert [found.pod for found in given_devices(tmp_path / "sock")] == ["a", "b", "c"]


def test_an_answer_of_many_frames_comes_whole(tmp_path: Path) -> None:
    """Check an answer of 300 KiB: gRPC sends less than that without a window update."""
    devices = [f"GPU-{number}" for number in range(40)]
    pods = [
        (f"namespace-{number}", f"pod-{number}" * 30, [container("main", ("nvidia.com/gpu", devices))])
        for number in range(300)
    ]
    path = tmp_path / "sock"
    with serving(path, lambda _: answer(*pods)):
        found = given_devices(path)
    assert len(found) == 300 * 40
    assert Given("namespace-299", "pod-299" * 30, "main", "nvidia.com/gpu", "GPU-39") in found


def test_a_kubelet_that_refuses_is_a_failed_call(tmp_path: Path) -> None:
    def refuse(context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        raise AssertionError

    path = tmp_path / "sock"
    with serving(path, refuse), pytest.raises(CallFailed, match="answered with an error"):
        given_devices(path)


names = st.text(max_size=20)
containers = st.builds(container, names, *[st.tuples(names, st.lists(names, max_size=3)) for _ in range(2)])


@settings(max_examples=30, deadline=None)
@given(pods=st.lists(st.tuples(names, names, st.lists(containers, max_size=2)), max_size=3))
def test_every_answer_is_read_as_protobuf_wrote_it(pods: list[tuple[str, str, list[Any]]]) -> None:
    wrote = answer(*pods)
    expected = [
        Given(pod.namespace, pod.name, one.name, devices.resource_name, device)
        for pod in MESSAGES["ListPodResourcesResponse"].FromString(wrote).pod_resources
        for one in pod.containers
        for devices in one.devices
        for device in devices.device_ids
    ]
    assert list(read_answer(wrote)) == expected


@settings(max_examples=100, deadline=None)
@given(rubbish=st.binary(max_size=60))
@example(rubbish=b"\x80" * 20)
@example(rubbish=b"\x0a\x7fshort")
def test_rubbish_is_read_or_refused(rubbish: bytes) -> None:
    with suppress(CallFailed):
        list(read_answer(rubbish))


@pytest.mark.parametrize("kind", [3, 4, 6, 7])
def test_a_wire_type_that_protobuf_does_not_use_is_refused(kind: int) -> None:
    with pytest.raises(CallFailed):
        list(read_answer(bytes([8 | kind, 0x0A, 0])))


# --- Servers that violate HTTP/2


@contextmanager
def speaking(path: Path, talk: Callable[[socket.socket], None]) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):  # the client may have left
                talk(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        thread.join(20)
        assert not thread.is_alive()


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


message = answer(("lab", "pod", [container("main", ("nvidia.com/gpu", [FIRST]))]))
whole = struct.pack(">BI", 0, len(message)) + message


def test_pings_padding_and_unknown_frames_are_no_problem(tmp_path: Path) -> None:
    heard: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        connection.sendall(frame(4, 0, 0, b"") + frame(6, 0, 0, b"12345678") + frame(0xAA, 0, 1, b"new"))
        connection.sendall(frame(0, 0x8, 1, b"\x03" + whole[:9] + b"pad") + frame(0, 0, 1, whole[9:]))
        connection.sendall(frame(1, 0x5, 1, b""))
        while data := connection.recv(65536):
            heard.append(data)

    with speaking(tmp_path / "sock", talk):
        [found] = given_devices(tmp_path / "sock")
    assert found.device == FIRST
    assert frame(6, 1, 0, b"12345678") in b"".join(heard)
    assert frame(4, 1, 0, b"") in b"".join(heard)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        frame(0, 0, 1, whole[:-3]) + frame(1, 0x5, 1, b""),
        frame(0, 1, 1, b"\x01" + whole[1:]),  # compressed, which we did not offer
        frame(0, 0x9, 1, b"\xff" + whole),
        frame(0, 0x9, 1, b""),
        frame(3, 0, 1, b"\0\0\0\x07"),
        frame(7, 0, 0, b"\0\0\0\0\0\0\0\x0b"),
        frame(1, 0x5, 1, b"\x88"),
        b"\xff\xff\xff\0\0\0\0\0\1" * 3,
    ],
)
def test_an_incomplete_answer_is_a_failed_call(tmp_path: Path, said: bytes) -> None:
    sock = tmp_path / "sock"
    with speaking(sock, lambda connection: connection.sendall(said)), pytest.raises(CallFailed):
        given_devices(sock)


@pytest.mark.parametrize(
    ("said", "pause_seconds"), [(b"", 0.05), (frame(6, 0, 0, b"12345678"), 0.02), (frame(0xAA, 0, 1, b""), 0)]
)
def test_an_endless_answer_ends_at_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes, pause_seconds: float
) -> None:
    """Check silence, frames that each come in time, and a flood of frames."""
    monkeypatch.setattr(kubelet, "TIMEOUT_SECONDS", 0.2)
    over = threading.Event()
    heard_out = time.monotonic() + 20

    def talk(connection: socket.socket) -> None:
        while not over.wait(pause_seconds) and time.monotonic() < heard_out:
            connection.sendall(said)

    with speaking(tmp_path / "sock", talk):
        with pytest.raises(CallFailed, match="time"):
            given_devices(tmp_path / "sock")
        over.set()
