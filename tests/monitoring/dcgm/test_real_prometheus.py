"""Real Prometheus that scrapes an exporter like NVIDIA's: its handling of labels, of pods that end and of gauges."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from monitoring.agent.schema import Report
from monitoring.dcgm.prometheus import NoAnswer, Prometheus
from monitoring.dcgm.translation import METRICS, MINUTES, Known, batches
from tests.monitoring.dcgm.exported import FIRST, SECOND, UTIL, XIDS
from tests.shared.ports import free_port

PROGRAM = os.environ.get("PROMETHEUS") or shutil.which("prometheus")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="no prometheus on this machine; PROMETHEUS names one"),
]
CONFIG = """
scrape_configs:
  - job_name: dcgm-exporter
    scrape_interval: 1s
    honor_labels: {honours}
    static_configs:
      - targets: ["127.0.0.1:{port}"]
        labels: {{namespace: gpu-operator, pod: nvidia-dcgm-exporter-78z52, container: exporter}}
"""
OWN = 'UUID="{}",gpu="{}",device="nvidia0",modelName="NVIDIA A100-SXM4-80GB",Hostname="gpu-1"'
# Labels of a GPU without a user, as the exporter writes them: empty, or absent.
NOBODY = ',container="",namespace="",pod=""'


def used_by(pod: str) -> str:
    return f',container="main",namespace="berth-demo",pod="{pod}"'


class Exporter(ThreadingHTTPServer):
    daemon_threads = True
    lines: tuple[str, ...] = ()

    def tells(self, *told: tuple[str, str, str, float]) -> None:
        """Set the metrics, as (metric, GPU, labels of the user, value)."""
        self.lines = tuple(
            f"{metric}{{{OWN.format(uuid, int(uuid != FIRST))}{user}}} {value}"
            for metric, uuid, user, value in told
        )


class Handler(BaseHTTPRequestHandler):
    server: Exporter

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write("".join(f"{line}\n" for line in self.server.lines).encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    with Exporter(("127.0.0.1", 0), Handler) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


@pytest.fixture(params=[False, True], ids=["renames labels", "honours labels"])
def url(request: pytest.FixtureRequest, exporter: Exporter, tmp_path: Path) -> Iterator[str]:
    config, port = tmp_path / "prometheus.yaml", free_port()
    honours = str(request.param).lower()
    config.write_text(CONFIG.format(honours=honours, port=exporter.server_port))
    command = [str(PROGRAM), f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    with subprocess.Popen(command) as process:
        yield f"http://127.0.0.1:{port}"
        process.terminate()


def report(url: str) -> Report | None:
    client = Prometheus(url, "", within_seconds=10)
    try:
        told = {metric: client.series(metric, minutes=MINUTES) for metric in METRICS}
    except NoAnswer:
        return None
    finally:
        client.close()
    pods = {("berth-demo", name): "gpu-1" for name in ("ws-1-0", "ws-2-0")}
    found = list(batches(told, Known(frozenset({"gpu-1"}), pods), time.time()))
    return found[0]["reports"][0] if found else None


def until(url: str, **wanted: object) -> Report:
    end = time.monotonic() + 60
    while True:
        seen = report(url)
        if seen and facts(seen) == wanted:
            return seen
        assert time.monotonic() < end, seen
        time.sleep(0.3)


def facts(seen: Report) -> dict[str, object]:
    return {
        "use": {gpu["uuid"]: gpu.get("utilization_percent") for gpu in seen["gpus"]},
        "users": [(holding["uuid"], holding["pod"]) for holding in seen.get("holdings", [])],
        "xids": [xid["xid"] for xid in seen["xids"]],
    }


def test_who_has_what_follows_the_exporter(exporter: Exporter, url: str) -> None:
    first, second = used_by("ws-1-0"), used_by("ws-2-0")
    exporter.tells((UTIL, FIRST, first, 90), (UTIL, SECOND, NOBODY, 0), (XIDS, FIRST, first, 0))
    until(url, use={FIRST: 90, SECOND: 0}, users=[(FIRST, "ws-1-0")], xids=[])
    exporter.tells((UTIL, FIRST, second, 30), (UTIL, SECOND, "", float("nan")), (XIDS, FIRST, second, 79))
    # The pod changed, the other GPU reports no number, and the gauge of errors has another Xid.
    until(url, use={FIRST: 30}, users=[(FIRST, "ws-2-0")], xids=[79])
    exporter.tells(*((UTIL, FIRST, f'{user},vgpu="{at}"', 50) for at, user in enumerate((first, second))))
    until(url, use={FIRST: 50}, users=[(FIRST, "ws-1-0"), (FIRST, "ws-2-0")], xids=[79])
