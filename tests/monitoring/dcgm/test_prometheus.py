"""Query of Prometheus over HTTP: its data, its errors, and what is never followed or shown."""

from __future__ import annotations

import json
import time
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from monitoring.dcgm import prometheus
from monitoring.dcgm.prometheus import NoAnswer, Prometheus, Series
from tests.monitoring.dcgm.exported import NOW, SECOND, UTIL, labels, of
from tests.shared.servers.prometheus import Fault, Server, send

SECRET = "a-token-that-nobody-sees"


def asked(url: str, token_path: str = "", within_seconds: float = 10) -> list[Series]:
    with closing(Prometheus(url, token_path, within_seconds=within_seconds)) as client:
        return client.series(UTIL, minutes=2)


def why(url: str, token_path: str = "", within_seconds: float = 10) -> str:
    with pytest.raises(NoAnswer) as error:
        asked(url, token_path, within_seconds)
    assert SECRET not in str(error.value)
    return str(error.value)


def test_series_come_with_their_labels_and_times(server: Server) -> None:
    server.told[UTIL] = [of(labels(), 1, 2, 3), of(labels(gpu="1"), 99)]
    assert asked(server.url) == server.told[UTIL]
    assert server.asked == [(f"{UTIL}[2m]", "")]


def test_a_path_before_the_api_is_kept_and_one_connection_serves_all(server: Server) -> None:
    client = Prometheus(f"{server.url}/prometheus/", "", within_seconds=10)
    ports: set[tuple[int, str]] = set()

    def note(request: BaseHTTPRequestHandler) -> None:
        ports.add((request.client_address[1], request.path.partition("?")[0]))
        send(request, 200, b'{"data":{"resultType":"matrix","result":[]}}')

    server.fault = note
    assert client.series(UTIL, minutes=2) == client.series(UTIL, minutes=2) == []
    client.close()
    assert [path for _port, path in ports] == ["/prometheus/api/v1/query"]


def test_the_token_is_read_anew_for_each_reading(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "token"
    for token in (SECRET, "another"):
        file.write_text(f"{token}\n")
        asked(server.url, str(file))
    assert [by for _query, by in server.asked] == [f"Bearer {SECRET}", "Bearer another"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        (f"{SECRET}\nand more", "one line"),
        ("", "one line"),
        ("ü", "one line"),
        ("a" * 9000, "one line"),
    ],
    ids=["no file", "two lines", "empty", "not ascii", "endless"],
)
def test_a_malformed_token_is_an_error_that_does_not_show_it(
    server: Server, tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    assert words in why(server.url, str(file))
    assert server.asked == []


def answers(status: int, content: bytes = b"", **headers: str) -> Fault:
    return lambda request: send(request, status, content, **headers)


def resets(request: BaseHTTPRequestHandler) -> None:
    request.close_connection = True


def breaks_off(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    request.close_connection = True


def speaks_otherwise(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
    request.close_connection = True


FAULTS: dict[str, tuple[Fault, str]] = {
    "redirect": (answers(302, Location="http://169.254.169.254/latest"), "with a redirect (302)"),
    "401": (answers(401, SECRET.encode()), "does not accept Berth's token (401)"),
    "403": (answers(403), "does not accept Berth's token (403)"),
    "422": (answers(422, b'{"error":"' + SECRET.encode() + b'"}'), "answered 422"),
    "503": (answers(503), "answered 503"),
    "html": (answers(200, b"<html>" + SECRET.encode()), "is not Prometheus"),
    "list": (answers(200, b"[]"), "is not Prometheus"),
    "null": (answers(200, b"null"), "is not Prometheus"),
    "vector": (answers(200, b'{"data": {"resultType": "vector", "result": []}}'), "is not Prometheus"),
    "nested": (answers(200, b"[" * 100_000), "is not Prometheus"),
    "breaks off": (breaks_off, "is not Prometheus"),
    "resets": (resets, "RemoteDisconnected"),
    "ssh": (speaks_otherwise, "BadStatusLine"),
}


@pytest.mark.parametrize(("fault", "words"), FAULTS.values(), ids=FAULTS)
def test_what_is_not_an_answer_is_an_error_without_secrets(server: Server, fault: Fault, words: str) -> None:
    server.fault = fault
    assert words in why(server.url)


def test_a_refused_connection_is_an_error() -> None:
    assert why("http://127.0.0.1:1") == "Prometheus cannot be asked: Connection refused."


def test_a_too_long_answer_is_broken_off(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "MOST_BYTES", 1 << 16)
    server.fault = answers(200, b" " * (1 << 18))
    assert why(server.url) == "Prometheus' answer is too long."


@pytest.mark.parametrize("headers", [True, False], ids=["headers", "body"])
def test_an_endless_answer_ends_at_the_deadline(server: Server, headers: bool) -> None:
    def trickles(request: BaseHTTPRequestHandler) -> None:
        request.close_connection = True
        with suppress(OSError):  # the client hangs up
            request.wfile.write(b"HTTP/1.1 200 OK\r\n" + (b"" if headers else b"\r\n"))
            while not server.ended.wait(0.02):
                request.wfile.write(b"X-More: 1\r\n" if headers else b" ")

    server.fault = trickles
    began = time.monotonic()
    assert why(server.url, within_seconds=0.3) == "Prometheus did not answer in time."
    assert time.monotonic() - began < 60


def test_after_the_deadline_no_request_is_sent(server: Server) -> None:
    client = Prometheus(server.url, "", within_seconds=0)
    with pytest.raises(NoAnswer, match="did not answer in time"):
        client.series(UTIL, minutes=2)
    assert server.asked == []


def test_series_that_cannot_be_read_hide_no_other(server: Server) -> None:
    good = {"metric": {"UUID": "GPU-1"}, "values": [[1.5, "7"], [0.5, "NaN"], [2.5, "+Inf"]]}
    broken = [{}, {"metric": {}, "values": [["x"]]}, {"metric": {}}, {"metric": [], "values": []}, None, 7]
    result = {"data": {"resultType": "matrix", "result": [*broken, good]}}
    server.fault = answers(200, json.dumps(result).encode())
    assert asked(server.url) == [Series({"UUID": "GPU-1"}, [(1.5, 7.0)])]


# --- Malicious labels: a scraped process may write anything there


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "9" * 5000], ids=["NUL", "half a character", "endless"])
def test_a_label_that_no_column_can_hold_is_left_out(server: Server, text: str) -> None:
    good = Series(labels(SECOND), [(NOW, 9.0)])
    server.told = {UTIL: [Series(labels("GPU-x", gpu=text), [(NOW, 7.0)]), good]}
    assert asked(server.url) == [good]


@pytest.mark.parametrize("at", [1e306, 9e18, -1e12])
def test_an_impossible_time_is_left_out(server: Server, at: float) -> None:
    server.told = {UTIL: [Series(labels(SECOND), [(at, 7.0), (NOW, 9.0)])]}
    assert [series.samples for series in asked(server.url)] == [[(NOW, 9.0)]]


@pytest.mark.parametrize(
    "path", ["/proc/self/environ", "/tmp/../var/run/secrets/kubernetes.io/serviceaccount/token"]
)
def test_berths_own_credentials_are_sent_to_nobody(path: str) -> None:
    assert "own credentials" in why("https://127.0.0.1:1", path)
