"""Tests of what callers see when a cluster does not answer as it should."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest
import urllib3

from clusters import transport
from clusters.errors import ClusterRefused, ClusterUnavailable, StreamSilent
from clusters.transport import ATTEMPTS, Transport
from tests.clusters.stub import Answer, Request, Stub, api_at, events, listed, pod, reset, status, text

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s", "namespace": "n"},
    "stringData": {"token": "hunter2"},
}
FINALIZER = [{"op": "add", "path": "/metadata/finalizers/-", "value": "x"}]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "PAUSE_SECONDS", 0.001)


def test_throttling_is_waited_out_when_short(stub: Stub) -> None:
    stub.answers = [status(429, "TooManyRequests", "slow down", Retry_After="0"), listed(pod("a", "1"))]
    assert len(stub.api.list("Pod")) == 1
    assert stub.methods == ["GET", "GET"]


def test_long_throttling_is_handed_to_the_caller(stub: Stub) -> None:
    stub.answers = [status(429, "TooManyRequests", "slow down", Retry_After="7")]
    with pytest.raises(ClusterUnavailable) as raised:
        stub.api.list("Pod")
    assert raised.value.retry_after_seconds == 7
    assert stub.methods == ["GET"]


def test_endless_throttling_is_not_retried_for_ever(stub: Stub) -> None:
    stub.answers = [status(429, "TooManyRequests", "slow down", Retry_After="0")]
    with pytest.raises(ClusterUnavailable):
        stub.api.apply(SECRET)
    assert len(stub.requests) == ATTEMPTS


def test_a_reset_within_tls_is_tried_again(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.answers = [listed(pod("a", "1"))]
    send, resets = Transport._send, [urllib3.exceptions.SSLError("EOF occurred in violation of protocol")]

    def reset_once(*arguments: Any, **options: Any) -> Any:
        if resets:
            raise resets.pop()
        return send(*arguments, **options)

    monkeypatch.setattr(Transport, "_send", reset_once)
    assert len(stub.api.list("Pod")) == 1


HICCUPS = {"reset": reset} | {
    str(n): status(n, "InternalError", "etcd is slow") for n in (500, 502, 503, 504)
}


@pytest.mark.parametrize("hiccup", HICCUPS.values(), ids=HICCUPS)
def test_a_hiccup_is_tried_again_where_that_is_harmless(stub: Stub, hiccup: Answer) -> None:
    stub.answers = [hiccup, hiccup, listed(pod("a", "1"))]
    assert len(stub.api.list("Pod")) == 1
    stub.answers = [hiccup, listed()]
    with pytest.raises(ClusterUnavailable):
        stub.api.json_patch("Pod", "n", "p", FINALIZER)
    assert stub.methods[3:] == ["PATCH"]


@pytest.mark.parametrize("code", [500, 503])
def test_a_server_in_trouble_means_try_again_later(stub: Stub, code: int) -> None:
    stub.answers = [status(code, "InternalError", "etcd is slow")]
    with pytest.raises(ClusterUnavailable, match="etcd is slow"):
        stub.api.get("Pod", "n", "p")


def test_an_apply_with_an_unknown_field_is_refused_although_it_comes_as_500(stub: Stub) -> None:
    message = "failed to create typed patch object (/app; /v1, Kind=ConfigMap): .bogus: field not declared in schema"
    stub.answers = [status(500, "", message)]
    with pytest.raises(ClusterRefused, match="field not declared"):
        stub.api.apply({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "app"}})


def test_refused_credentials_mean_try_again_later(stub: Stub) -> None:
    stub.answers = [status(401, "Unauthorized", "Unauthorized")]
    with pytest.raises(ClusterUnavailable, match="credentials"):
        stub.api.list("Pod")


def test_a_refusal_carries_the_clusters_own_words(stub: Stub) -> None:
    stub.answers = [status(403, "Forbidden", "exceeded quota: q")]
    with pytest.raises(ClusterRefused) as raised:
        stub.api.try_create({"kind": "Pod", "apiVersion": "v1", "metadata": {"namespace": "n"}})
    found = raised.value
    assert (found.status, found.reason, found.message) == (403, "Forbidden", "exceeded quota: q")


def test_what_a_proxy_answers_is_no_crash(stub: Stub) -> None:
    stub.answers = [text(200, b"<html>welcome</html>"), text(404, b"[]"), text(409, b"\xff<html>")]
    with pytest.raises(ClusterUnavailable, match="not JSON"):
        stub.api.list("Pod")
    assert stub.api.get("Pod", "n", "p") is None
    with pytest.raises(ClusterRefused):
        stub.api.merge_patch("Pod", "n", "p", {})


def test_nobody_there_is_told_at_once_and_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "PAUSE_SECONDS", 60)
    started = time.monotonic()
    with socket.socket() as kept:  # keeps the port, so that no other process listens there
        kept.bind(("127.0.0.1", 0))
        port = kept.getsockname()[1]
        with pytest.raises(
            ClusterUnavailable, match=rf"Cannot reach http://127.0.0.1:{port}: .*[Cc]onnection refused"
        ):
            api_at(port).list("Pod")
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("code", [400, 422, 500])
def test_a_secret_that_a_refusal_quotes_is_in_no_error(stub: Stub, code: int) -> None:
    stub.answers = [status(code, "Invalid", "failed to create typed patch object: .data.token: hunter2")]
    with pytest.raises(ClusterRefused) as raised:
        stub.api.apply(SECRET)
    assert "hunter2" not in repr(raised.value) + str(raised.value) + raised.value.message


def test_credentials_are_in_no_error(stub: Stub, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    for answer in (reset, status(500, "", "no"), status(401, "", "no"), text(200, b"x")):
        stub.answers = [answer]
        with pytest.raises(ClusterUnavailable) as raised:
            stub.api.list("Pod")
        assert "very-secret-token" not in repr(raised.value)
        assert raised.value.__cause__ is None
    assert "very-secret-token" not in caplog.text


def test_an_expired_page_is_followed_by_one_list_in_one_piece(stub: Stub) -> None:
    expired = status(410, "Expired", "The provided continue parameter is too old")
    first, whole = listed(pod("a", "1"), **{"continue": "more"}), listed(pod("a", "1"), pod("b", "2"))
    stub.answers = [first, expired, whole]
    assert [body["metadata"]["name"] for body in stub.api.list("Pod")] == ["a", "b"]
    assert "limit" not in stub.requests[-1][1]


def test_followed_lines_can_be_ended_from_another_thread(stub: Stub) -> None:
    stub.watches = [events(("ADDED", pod("a", "1")), ends=False)]
    lines = stub.api.watch("Pod", version="1", server_timeout_seconds=60, read_timeout_seconds=30)
    assert "ADDED" in next(lines)
    started = time.monotonic()
    lines.close()
    assert list(lines) == []
    assert time.monotonic() - started < 10


def test_silence_is_told(stub: Stub) -> None:
    stub.watches = [events(ends=False)]
    with pytest.raises(StreamSilent):
        list(stub.api.watch("Pod", version="1", server_timeout_seconds=60, read_timeout_seconds=1))


def test_log_lines_come_as_text_whatever_bytes_they_are(stub: Stub) -> None:
    stub.answers = [text(200, b"one\n\xfftwo\nlast without an end")]
    lines = list(stub.api.logs("n", "p", container="main", tail_lines=3))
    assert lines == ["one", "\ufffdtwo", "last without an end"]
    assert stub.requests == [("GET", {"container": "main", "follow": "false", "tailLines": "3"})]


def test_a_log_without_line_feeds_comes_in_pieces(stub: Stub) -> None:
    def endless(request: Request) -> None:
        request.start_stream()
        for content in [b"x" * 10_000] * 15 + [b"\nnext\n", b""]:
            request.chunk(content)

    stub.answers = [endless]
    pieces = list(stub.api.logs("n", "p", container="main"))
    assert "".join(pieces[:-1]) == "x" * 150_000
    assert max(map(len, pieces)) <= 64 * 1024
    assert pieces[-1] == "next"


def test_the_log_of_a_node_that_does_not_answer_is_unavailable(stub: Stub) -> None:
    # Seen on Kubernetes 1.36.
    stub.answers = [status(500, "", "no preferred addresses found; known addresses: []")]
    with pytest.raises(ClusterUnavailable):
        stub.api.logs("n", "p", container="main")


@pytest.mark.parametrize(
    "answer", [b"{}", b"[]", b'{"kind": "Status", "metadata": {}}', b'{"items": [], "metadata": null}']
)
def test_what_is_no_list_is_no_cluster_that_has_nothing(stub: Stub, answer: bytes) -> None:
    stub.answers = [text(200, answer)] * 2
    with pytest.raises(ClusterUnavailable, match="something else"):
        stub.api.list("Pod")
    with pytest.raises(ClusterUnavailable, match="something else"):
        list(stub.api.each("Pod"))


def test_what_a_cluster_says_can_be_written_down(stub: Stub) -> None:
    stub.answers = [text(403, b"no\0entry")]
    with pytest.raises(ClusterRefused) as refused:
        stub.api.list("Pod")
    assert refused.value.message == str(refused.value) == "no\ufffdentry"
