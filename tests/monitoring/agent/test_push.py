"""Reports to a real HTTP server, whatever it does: none is lost too early, none blocks the others."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from devcluster.serving import tls
from monitoring.agent import push
from monitoring.agent.push import Portal, Pusher, Spool
from monitoring.agent.schema import Report
from tests.monitoring.agent.receiver import Receiver


def report(sequence: int) -> Report:
    return {"sequence": sequence, "taken_at": 1.5, "troubles": [], "gpus": [], "xids": []}


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("first\n")
    return path


@pytest.fixture
def spool() -> Spool:
    return Spool()


@pytest.fixture
def pusher(receiver: Receiver, token: Path, spool: Spool) -> Iterator[Pusher]:
    portal = Portal(receiver.address, token, None)
    yield Pusher(spool, portal, "gpu-1")
    portal.close()


def test_a_batch_names_its_sender_and_comes_once(pusher: Pusher, spool: Spool, receiver: Receiver) -> None:
    pusher.inventory = {"driver_version": "570.86.15", "gpus": []}
    spool.put(report(1))
    spool.put(report(2))
    assert pusher.push() == 0
    assert pusher.push() == 0  # nothing is left
    [batch] = receiver.taken
    assert batch.pop("agent")
    assert batch.pop("sent_at") > 0
    assert batch == {
        "version": 1,
        "node": "gpu-1",
        "dropped": 0,
        "inventory": pusher.inventory,
        "reports": [report(1), report(2)],
    }
    assert receiver.seen == [("/api/v1/agent/samples/", "Bearer first")]


def test_a_changed_token_counts_from_the_next_push(
    pusher: Pusher, spool: Spool, receiver: Receiver, token: Path
) -> None:
    receiver.answers = [(401, {})]
    spool.put(report(1))
    assert pusher.push() > 0
    token.write_text("second\n")
    pusher.push()
    assert [authorization for _, authorization in receiver.seen] == ["Bearer first", "Bearer second"]
    assert receiver.sequences() == [1]


@pytest.mark.parametrize("wrong", [b"", b"\n", b"two\nlines", b"zw\xc3\xb6lf", b"\xff\xfe"])
def test_a_wrong_token_is_a_failure_that_does_not_show_it(
    pusher: Pusher, spool: Spool, receiver: Receiver, token: Path, wrong: bytes
) -> None:
    token.write_bytes(wrong) if wrong else token.unlink()
    spool.put(report(1))
    assert pusher.push() > 0
    assert "token" in pusher.failure
    assert not any(part in pusher.failure for part in ("two", "lines", "lf"))
    token.write_text("good")
    pusher.push()
    assert receiver.sequences() == [1]


@pytest.mark.parametrize(("is_closed", "connections"), [(False, 1), (True, 5)])
def test_one_connection_is_kept_until_the_portal_closes_it(
    pusher: Pusher, spool: Spool, receiver: Receiver, is_closed: bool, connections: int
) -> None:
    receiver.hangs_up_after_each = is_closed
    for number in range(5):
        spool.put(report(number))
        assert pusher.push() == 0
    assert (receiver.sequences(), pusher.failures) == ([0, 1, 2, 3, 4], 0)
    assert receiver.connections == connections


def test_a_portal_that_is_away_for_an_hour_gets_all_of_it_in_order(
    pusher: Pusher, spool: Spool, receiver: Receiver
) -> None:
    gpu: Any = {f"figure_{number}": number * 1.5 for number in range(30)}
    receiver.answers = [(503, {})] * 3
    waits = []
    for number in range(720):
        gpus: Any = [gpu | {"uuid": f"GPU-{place}"} for place in range(8)]
        spool.put({**report(number), "gpus": gpus})
        if number % 240 == 0:
            waits.append(pusher.push())
    assert waits[0] < waits[1] < waits[2]
    threads = set(threading.enumerate())
    while len(spool):
        assert pusher.push() == 0
    assert receiver.sequences() == list(range(720))
    assert spool.dropped == 0
    assert 1 < len(receiver.taken) < 30
    assert set(threading.enumerate()) <= threads


def test_waits_grow_to_a_minute_and_start_anew(pusher: Pusher, spool: Spool, receiver: Receiver) -> None:
    receiver.answers = [(500, {})] * 12
    spool.put(report(1))
    waits = [pusher.push() for _ in range(12)]
    assert 0.5 <= waits[0] <= 1.5
    assert all(45 <= wait <= 75 for wait in waits[7:])
    assert pusher.push() == 0
    receiver.answers = [(500, {})]
    spool.put(report(2))
    assert pusher.push() <= 1.5


def test_a_portal_may_ask_for_time(pusher: Pusher, spool: Spool, receiver: Receiver) -> None:
    receiver.answers = [(429, {"Retry-After": after}) for after in ("20", "99999", "soon", "0")]
    spool.put(report(1))
    assert 15 <= pusher.push() <= 25
    assert pusher.push() <= 75
    assert pusher.push() <= 10
    assert pusher.push() >= 0.7
    assert len(spool) == 1


def test_a_report_refused_for_good_blocks_no_other(pusher: Pusher, spool: Spool, receiver: Receiver) -> None:
    receiver.refuses = lambda batch: 422 if any(one["sequence"] == 3 for one in batch["reports"]) else 0
    for number in range(6):
        spool.put(report(number))
    for _ in range(20):
        pusher.push()
    assert receiver.sequences() == [0, 1, 2, 4, 5]
    assert pusher.refused == 1
    spool.put(report(6))
    pusher.push()
    assert receiver.taken[-1]["dropped"] == 1


@pytest.mark.parametrize("status", [301, 401, 403, 404, 500, 502])
def test_reports_are_kept_if_the_portal_is_at_fault(
    pusher: Pusher, spool: Spool, receiver: Receiver, status: int
) -> None:
    receiver.answers = [(status, {})]
    spool.put(report(1))
    assert pusher.push() > 0
    assert pusher.failure.startswith(str(status))
    pusher.push()
    assert (receiver.sequences(), pusher.failure) == ([1], "")


def test_a_portal_that_is_not_there(token: Path, spool: Spool, receiver: Receiver) -> None:
    pusher = Pusher(spool, Portal("http://127.0.0.1:1", token, None), "gpu-1")
    spool.put(report(1))
    assert pusher.push() > 0
    assert "refused" in pusher.failure
    assert len(spool) == 1


def test_an_answer_that_is_not_http_or_too_long(token: Path, spool: Spool) -> None:
    words = iter([b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 500 no\r\n\r\n" + b"x" * 10**6])

    class Babbler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(ConnectionError):  # the client may have read enough
                self.wfile.write(next(words))
                self.request.shutdown(socket.SHUT_WR)
                while self.request.recv(65536):
                    pass

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Babbler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        pusher = Pusher(spool, Portal(f"http://127.0.0.1:{server.server_address[1]}", token, None), "gpu-1")
        spool.put(report(1))
        failures = []
        for _ in range(2):
            assert pusher.push() > 0
            failures.append(pusher.failure)
        server.shutdown()
        thread.join()
    assert failures[0].startswith("no answer: BadStatusLine")
    assert failures[1].startswith("500")
    assert len(failures[1]) < 300


def test_a_full_spool_drops_and_counts_the_oldest() -> None:
    small = Spool(most_bytes=2000)
    for number in range(200):
        small.put(report(number))
    kept = [one.sequence for one in small.oldest(1000)]
    assert kept == list(range(200 - len(kept), 200))
    assert 0 < len(kept) < 100
    assert small.dropped == 200 - len(kept)


def test_a_report_dropped_while_it_is_sent_is_not_removed_twice(
    token: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Spool(most_bytes=2000)
    portal = Portal(receiver.address, token, None)
    pusher = Pusher(small, portal, "gpu-1")
    small.put(report(0))
    sending = portal.send

    def slow(body: bytes) -> push.Answer:
        for number in range(1, 200):
            small.put(report(number))
        return sending(body)

    monkeypatch.setattr(portal, "send", slow)
    pusher.push()
    monkeypatch.setattr(portal, "send", sending)
    left = [one.sequence for one in small.oldest(1000)]
    assert left[-1] == 199
    pusher.push()
    assert receiver.sequences() == [0, *left]
    portal.close()


@pytest.mark.parametrize("address", ["portal.example", "ftp://portal.example", "https://", ""])
def test_a_wrong_address_is_refused_at_once(address: str, token: Path) -> None:
    with pytest.raises(ValueError, match="address"):
        Portal(address, token, None)


# --- TLS


@pytest.mark.parametrize("is_known", [True, False])
def test_the_token_goes_to_no_server_with_an_unknown_certificate(
    is_known: bool, spool: Spool, receiver: Receiver, token: Path, tmp_path: Path
) -> None:
    for folder in ("portal", "somebody"):
        (tmp_path / folder).mkdir()
    context, ours = tls.context(tmp_path / "portal")
    _, others = tls.context(tmp_path / "somebody")
    (tmp_path / "ca.pem").write_text(ours if is_known else others)
    receiver.server.socket = context.wrap_socket(
        receiver.server.socket, server_side=True, do_handshake_on_connect=False
    )
    portal = Portal(receiver.address.replace("http:", "https:"), token, tmp_path / "ca.pem")
    pusher = Pusher(spool, portal, "gpu-1")
    spool.put(report(1))
    assert (pusher.push() == 0) is is_known
    assert bool(receiver.seen) is is_known
    assert is_known or "CERTIFICATE_VERIFY_FAILED" in pusher.failure
    portal.close()
