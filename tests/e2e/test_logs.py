"""Query strings hold tickets and tokens: none reaches a log, whoever logs it."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from portal.logs import OwnDetails, formatter, without_queries
from tests.e2e.browsing import database_url
from tests.shared.ports import free_port

SECRET = "s3cr3t-ticket"


def logged(text: str, *args: object, error: Exception | None = None) -> str:
    """Return the line of a production for this record."""
    known = (type(error), error, None) if error else None
    record = logging.LogRecord("any", logging.WARNING, __file__, 1, text, args, known)
    return str(json.loads(formatter(as_json=True).format(record)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('1.2.3.4 - "WebSocket /ws/x/?token=abc" [accepted]', '1.2.3.4 - "WebSocket /ws/x/?…" [accepted]'),
        (
            "GET https://berth.example/open/?ticket=a&b=c HTTP/1.1",
            "GET https://berth.example/open/?… HTTP/1.1",
        ),
        ("failed with url: /open/?ticket=abc (Caused by x)", "failed with url: /open/?… (Caused by x)"),
        ("see /open/?ticket=abc, or ask", "see /open/?…, or ask"),
        ('"/open/?"quoted"', '"/open/?…"'),
        ("Is it a/b? Yes", "Is it a/b? Yes"),
        ("What? Nothing is cut here?really", "What? Nothing is cut here?really"),
    ],
)
def test_the_query_of_an_address_is_cut_and_the_rest_is_kept(before: str, after: str) -> None:
    assert without_queries(None, "", {"event": before})["event"] == after


def test_errors_and_their_causes_keep_no_query() -> None:
    cause = ConnectionError(f"Max retries exceeded with url: /open/?ticket={SECRET}")
    error = RuntimeError("no answer")
    error.__cause__ = cause
    assert SECRET not in logged("asking %s", f"http://10.0.0.1/?t={SECRET}", error=error)
    assert "Max retries exceeded with url: /open/?…" in logged("asking", error=error)


@given(
    path=st.text(st.characters(categories=["L", "N"], include_characters="/-_.%"), max_size=30),
    query=st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), max_size=30),
)
def test_whatever_stands_in_an_address_its_secret_is_cut(path: str, query: str) -> None:
    assert SECRET not in logged(f'"GET /{path}?{query}{SECRET}" 404')


def test_details_are_berths_own_alone() -> None:
    """Libraries write headers, tokens and bodies below INFO."""
    assert [handler["filters"] for handler in settings.LOGGING["handlers"].values()] == [["own_details"]]
    kept = {
        (name, level)
        for name in ("workspaces.gateway", "uvicorn.error", "urllib3.connectionpool", "portals")
        for level in (logging.DEBUG, logging.INFO)
        if OwnDetails().filter(logging.LogRecord(name, level, __file__, 1, "", (), None))
    }
    assert kept == {
        ("workspaces.gateway", logging.DEBUG),
        ("workspaces.gateway", logging.INFO),
        ("uvicorn.error", logging.INFO),
        ("urllib3.connectionpool", logging.INFO),
        ("portals", logging.INFO),
    }


def test_a_huge_address_does_not_hold_up_the_process() -> None:
    begun = time.process_time()
    for text in ("/" * 10**6, "/?" * 10**6, "/?" + '"' * 10**6, "?" * 10**6, "/?a " * 10**5):
        without_queries(None, "", {"event": text})
    assert time.process_time() - begun < 20


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("trial", ["1", ""])
def test_the_real_server_writes_no_query_string(tmp_path: Path, trial: str) -> None:
    """Told to log all it can, also the access log, which is the web server's default."""
    port = free_port()
    environ = os.environ | {
        "DATABASE_URL": database_url(),
        "BERTH_ROLE": "web",
        "BERTH_TRIAL": trial,
        "BERTH_PLAIN_STATIC": "1",
        "BERTH_SECRET_KEY": "".join(chr(33 + number * 7 % 90) for number in range(60)),
        "BERTH_BASE_URL": f"https://127.0.0.1:{port}",
        "BERTH_ALLOWED_HOSTS": "127.0.0.1",
        "BERTH_WORKSPACE_DOMAIN": "ws.test",
        "BERTH_BEHIND_PROXY": "1",
        "BERTH_LOG_LEVEL": "DEBUG",
        "DJANGO_SETTINGS_MODULE": "portal.settings",
    }
    options = f"--ws portal.sockets:Sockets --port {port} --log-level debug"
    command = f"-m uvicorn portal.asgi:application {options}".split()
    written = tmp_path / "output"
    with (
        written.open("wb") as output,
        subprocess.Popen([sys.executable, *command], env=environ, stdout=output, stderr=output) as process,
    ):
        try:
            _wait_for(port, process)
            statuses = [_ask(port, *request) for request in _requests(port)]
            handshakes = [_handshake(port, origin) for origin in ("", "Origin: https://evil.test\r\n")]
        finally:
            process.terminate()
    text = written.read_text()
    assert statuses == [404, 200, 401, 400, 403, 403, 401, 421]
    assert [answer.split()[1] for answer in handshakes] == ["101", "403"]
    assert SECRET not in text
    for kept in ("Not Found: /open/", "WebSocket /ws/workspaces/?", "Forbidden (", "Referer checking failed"):
        assert kept in text, kept


def _requests(port: int) -> list[tuple[str, str, dict[str, str]]]:
    """Requests that Django, the gateway or a library has something to say about."""
    own = {"Host": f"127.0.0.1:{port}", "X-Forwarded-Proto": "https"}
    form = {**own, "Referer": f"https://evil.test/?ticket={SECRET}", "Cookie": f"berth_csrf={'a' * 32}"}
    guest = {**own, "Host": f"{uuid4()}.ws.test"}
    return [
        ("GET", f"/open/?ticket={SECRET}", own),
        ("GET", f"/sign-in/?next=/open/?ticket={SECRET}", own),
        ("GET", f"/api/v1/workspaces/?search={SECRET}", own),
        ("GET", f"/sign-in/?next={SECRET}", {**own, "Host": f"evil.test/?{SECRET}"}),
        ("POST", f"/sign-in/?next=/{SECRET}", own),
        ("POST", f"/sign-in/?next=/{SECRET}", form),
        ("GET", f"/?berth-ticket={SECRET}", guest),
        ("POST", f"/api/v1/ws-tickets/?a=%00{SECRET}", {**own, "Host": "/?" + SECRET}),
    ]


def _ask(port: int, method: str, path: str, headers: dict[str, str]) -> int:
    request = Request(f"http://127.0.0.1:{port}{path}", method=method, headers=headers)
    try:
        return int(urlopen(request, timeout=60).status)
    except HTTPError as error:
        return error.code


def _handshake(port: int, origin: str) -> str:
    """Return the first line of the answer to a websocket's handshake with a ticket."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(
            f"GET /ws/workspaces/?token={SECRET} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\n"
            f"Upgrade: websocket\r\nCookie: berth_session={SECRET}\r\n{origin}Sec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        return connection.makefile("rb").readline().decode()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server ended")
