"""The node agent beside people's work: memory and CPU over ten minutes at 8 GPUs (a stand-in for NVML)"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from portal.up.plan import REPOSITORY
from tests.bench import Figure
from tests.bench.helpers.parts import cpu_seconds, memory_mib
from tests.monitoring.agent.simulated_kubelet import answer, container, serving
from tests.shared.ports import free_port

SECONDS = 600
SETTLING_SECONDS = 10
SCRAPE_SECONDS = 15
GPUS, PROCESSES, OTHER_PODS = 8, 4, 100
UUID = "GPU-01111111-1111-4111-8111-111111111111"
CGROUP = "0::/kubepods.slice/kubepods-pod0f3dbd21_3a4c_4f7e_9d7d_3d7f7d6a1b2c.slice/cri-containerd-{}.scope\n"
AGENT = f"""
import pynvml
from monitoring.agent.__main__ import main
from tests.monitoring.agent.stand_in import Gpu, Running, StandIn
pynvml.nvmlLib = StandIn(*(
    Gpu("{UUID}".replace("0", str(at), 1), processes=[Running(at * 10 + one) for one in range({PROCESSES})])
    for at in range({GPUS})
))
pynvml.nvmlLib.wait_seconds = 60
main()
"""
WITHOUT = "from monitoring.agent.__main__ import main; main()"


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        _node(folder)
        stack.enter_context(serving(folder / "kubelet.sock", lambda _: _pods()))
        portal = stack.enter_context(_portal())
        watched = stack.enter_context(_agent(folder, portal, AGENT))
        idle = stack.enter_context(_agent(folder, portal, WITHOUT))
        time.sleep(SETTLING_SECONDS)
        began, before = time.monotonic(), {pid: cpu_seconds(pid) for pid, _ in (watched, idle)}
        first = memory_mib(watched[0])
        while (took := time.monotonic() - began) < SECONDS:
            time.sleep(min(SCRAPE_SECONDS, SECONDS - took))
            for _, port in (watched, idle):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read()
        took = time.monotonic() - began
        for what, (pid, _) in ((f"{GPUS} GPUs", watched), ("no NVML", idle)):
            yield Figure(f"{what}: CPU", (cpu_seconds(pid) - before[pid]) / took * 100, "% of a core")
            yield Figure(f"{what}: resident memory", memory_mib(pid), "MiB")
            yield Figure(f"{what}: most resident memory", memory_mib(pid, "VmHWM"), "MiB")
        yield Figure(f"{GPUS} GPUs: memory grown in {took:.0f} s", memory_mib(watched[0]) - first, "MiB")
        yield Figure("reports pushed", portal.reports, f"in {took + SETTLING_SECONDS:.0f} s by two agents")
        yield Figure("a report", portal.longest / 1024, "KiB of JSON")
        yield Figure("an hour of reports, kept while the portal is away", 720 * portal.packed / 2**20, "MiB")


def _node(folder: Path) -> None:
    for at in range(GPUS):
        for one in range(PROCESSES):
            process = folder / "proc" / str(at * 10 + one)
            process.mkdir(parents=True)
            (process / "cgroup").write_text(CGROUP.format(str(at) * 64))
    (folder / "token").write_text("a-token")
    (folder / "dev").mkdir()
    for name in ("nvidiactl", "nvidia-uvm"):
        (folder / "dev" / name).touch()


def _pods() -> bytes:
    holding = [
        (
            "berth-lab",
            f"ws-{at}-0",
            [container("main", ("nvidia.com/gpu", [UUID.replace("0", str(at), 1)]))],
        )
        for at in range(GPUS)
    ]
    others = [("kube-system", f"other-{number}", [container("main")]) for number in range(OTHER_PODS)]
    return answer(*holding, *others)


class _Portal(ThreadingHTTPServer):
    reports = longest = packed = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Taking(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Portal

    def do_POST(self) -> None:
        batch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.reports += len(batch["reports"])
        for report in batch["reports"]:
            told = json.dumps(report).encode()
            self.server.longest = max(self.server.longest, len(told))
            self.server.packed = max(self.server.packed, len(zlib.compress(told, 1)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def _portal() -> Iterator[_Portal]:
    with _Portal(("127.0.0.1", 0), _Taking) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@contextmanager
def _agent(folder: Path, portal: _Portal, program: str) -> Iterator[tuple[int, int]]:
    """Start an agent; yield its pid and metrics port. Compile first, as in an image: compiling takes memory."""
    port = free_port()
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        "BERTH_AGENT_PORTAL": portal.address,
        "BERTH_AGENT_TOKEN_FILE": str(folder / "token"),
        "BERTH_AGENT_LISTEN": f"127.0.0.1:{port}",
        "BERTH_AGENT_KUBELET_SOCKET": str(folder / "kubelet.sock"),
        "BERTH_AGENT_PROC": str(folder / "proc"),
        "BERTH_AGENT_DEV": str(folder / "dev"),
    }
    command = [sys.executable, "-c", program]
    subprocess.run(
        [sys.executable, "-c", program, "--once"], cwd=REPOSITORY, env=environ, stdout=subprocess.DEVNULL
    )
    with subprocess.Popen(command, cwd=REPOSITORY, env=environ) as process:
        yield process.pid, port
        process.terminate()
        began = time.monotonic()
        process.wait(20)
        print(f"| ended after | {time.monotonic() - began:.2f} s |", flush=True)
