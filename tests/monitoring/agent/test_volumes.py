"""Use of volumes from the kubelet's summary: what is read of it, and that no answer stops a look."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from monitoring.agent.volumes import VolumeUses, read_summary

MIB = 2**20
REF = {"name": "vol-1", "namespace": "berth-demo"}
SUMMARY: dict[str, Any] = {
    "node": {},
    "pods": [
        {"podRef": {}, "volume": [
            {"name": "a", "pvcRef": REF, "usedBytes": 5 * MIB + 1, "capacityBytes": 100 * MIB},
            {"name": "token", "usedBytes": 1, "capacityBytes": 1},
            {"name": "block", "pvcRef": {**REF, "name": "raw"}, "capacityBytes": 1},
        ]},
        {"podRef": {}, "volume": [
            {"name": "b", "pvcRef": REF, "usedBytes": 5 * MIB, "capacityBytes": 100 * MIB},
        ]},
        {"podRef": {}},
    ],
}  # fmt: skip
READ = [{"namespace": "berth-demo", "claim": "vol-1", "used_mib": 5, "capacity_mib": 100}]


class Kubelet:
    def __init__(self, folder: Path) -> None:
        self.body, self.status, self.seen = json.dumps(SUMMARY), 200, list[tuple[str, str | None]]()
        kubelet = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kubelet.seen.append((self.path, self.headers["Authorization"]))
                self.send_response(kubelet.status)
                self.end_headers()
                self.wfile.write(kubelet.body.encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        key, certificate = folder / "key.pem", folder / "cert.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=node", "-days", "2",
             "-keyout", str(key), "-out", str(certificate)],
            check=True, capture_output=True,
        )  # fmt: skip
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelet]:
    (tmp_path / "token").write_text("secret\n")
    made = Kubelet(tmp_path)
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def uses(kubelet: Kubelet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VolumeUses:
    monkeypatch.setattr("monitoring.agent.volumes.TIMEOUT_SECONDS", 60)
    return VolumeUses("127.0.0.1", tmp_path / "token", kubelet.server.server_port)


def test_each_claim_is_read_once_and_nothing_else() -> None:
    assert read_summary(SUMMARY) == READ


def test_the_kubelet_is_asked_with_the_token_once_a_minute(kubelet: Kubelet, uses: VolumeUses) -> None:
    assert uses.due() == READ
    assert uses.due() is None
    assert kubelet.seen == [("/stats/summary", "Bearer secret")]


@pytest.mark.parametrize(
    "body", ["", "[]", "{}", '{"pods": 1}', '{"pods": [{"volume": [{"pvcRef": 1}]}]}', "x"]
)
def test_an_answer_that_cannot_be_read_is_none(kubelet: Kubelet, uses: VolumeUses, body: str) -> None:
    kubelet.body = body
    assert uses.due() in (None, [])


def test_a_refusal_is_none(kubelet: Kubelet, uses: VolumeUses) -> None:
    kubelet.status = 403
    assert uses.due() is None


def test_without_an_address_or_a_token_nobody_is_asked(kubelet: Kubelet, tmp_path: Path) -> None:
    assert VolumeUses("", tmp_path / "token").due() is None
    assert VolumeUses("127.0.0.1", tmp_path / "none", kubelet.server.server_port).due() is None
    assert kubelet.seen == []
