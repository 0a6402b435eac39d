"""Asking many workspaces at once: who answers, who does not, and who answers too much."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from monitoring.idle.asking import ask
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace
from workloads.models import Image
from workspaces.models import Workspace
from workspaces.state import jupyter
from workspaces.state.inside import Inside

pytestmark = pytest.mark.django_db
QUIET = {"kernels": 0, "terminals": 1, "ssh": 0, "keep_alive_seconds": 5, "version": 1}


class Notebook(ThreadingHTTPServer):
    """Stands where a workspace's Jupyter would; `body` is what it answers to who has the token."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.body, self.token, self.asked = json.dumps(QUIET).encode(), "", list[tuple[str, str, bytes]]()


class Answer(BaseHTTPRequestHandler):
    server: Notebook

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, self.path, body))
        known = self.headers["Authorization"] == f"token {self.server.token}"
        self.send_response(200 if known else 403)
        self.end_headers()
        self.wfile.write(self.server.body)

    do_GET = do_POST = answer  # noqa: N815 (as http.server calls them)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def notebook() -> Iterator[Notebook]:
    with Notebook() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def workspace_at(cast: Cast, notebook: Notebook) -> Workspace:
    row = make_workspace(cast, cast.bob, host="127.0.0.1", jupyter_port=notebook.server_port)
    notebook.token = jupyter.gateway_token(row)
    return row


def test_a_workspace_answers_by_its_jupyter(cast: Cast, notebook: Notebook) -> None:
    row = workspace_at(cast, notebook)
    assert ask([row]) == {row.run: Inside(0, 1, 0, 5)}
    assert row.run is not None
    ask([row], {row.run: "soon"})
    assert notebook.asked == [("GET", "/berth/status", b""), ("POST", "/berth/status", b"soon")]


@pytest.mark.parametrize("body", [b"<html>", b"{}", b"[" * 100_000, json.dumps(QUIET).encode() + b" " * 5000])
def test_an_answer_that_does_not_hold_or_is_too_long_is_none(
    cast: Cast, notebook: Notebook, body: bytes
) -> None:
    row = workspace_at(cast, notebook)
    notebook.body = body
    assert ask([row]) == {row.run: None}


def test_a_wrong_token_and_nobody_there_are_no_answer(cast: Cast, notebook: Notebook) -> None:
    row = workspace_at(cast, notebook)
    notebook.token = "another"
    assert ask([row]) == {row.run: None}
    row.jupyter_port = 1
    assert ask([row]) == {row.run: None}


def test_without_jupyter_it_is_asked_by_ssh_and_without_both_not_at_all(cast: Cast) -> None:
    row = make_workspace(cast, cast.bob, host="127.0.0.1", ssh_port=1)
    Image.objects.update(offers_jupyter=False)
    row.image.refresh_from_db()
    assert ask([row]) == {row.run: None}
    row.ssh_port = None
    assert ask([row]) == {row.run: None}
