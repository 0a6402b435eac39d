"""Network of the pods: reachability, addresses that nobody can take over, and its end with devcluster."""

import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from devcluster.kubelet.network import podnetwork
from devcluster.testing.cluster import ROOT, DevCluster, is_gone, is_ready, running
from devcluster.testing.kube import Obj
from devcluster.testing.waiting import until
from helpers.shells import ATTACKS, NODES, PROCESSES, attack, found, output, python, shell

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not ROOT or shutil.which("slirp4netns") is None,
        reason="a network for pods needs root here, and slirp4netns",
    ),
]
ARGUMENTS = PROCESSES
SERVE = "cd /tmp && echo hello >index.html && exec python -m http.server {} 8888"
PROBE = {"httpGet": {"path": "/", "port": 8888}, "periodSeconds": 1}


def serving(cluster: DevCluster, space: str, name: str, bind: str = "") -> str:
    """Return the address of a pod that answers at port 8888, by default on all its addresses."""
    body = shell(name, SERVE.format(bind))
    body["spec"]["containers"][0]["readinessProbe"] = PROBE
    cluster.create(f"{space}/pods", body)
    return str(cluster.until(f"{space}/pods/{name}", is_ready)["status"]["podIP"])


def reached_from_a_pod(cluster: DevCluster, space: str, wanted: dict[str, str]) -> Obj:
    return attack(cluster, space, "reach", json.dumps(wanted))


def reached_from_here(wanted: dict[str, str]) -> Obj:
    command = [sys.executable, "-c", ATTACKS.read_text(), "reach", json.dumps(wanted)]
    return found(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


@pytest.fixture
def doors() -> Iterator[dict[str, str]]:
    """Listeners on this machine's loopback, on an address of a load balancer, and under an abstract name."""
    listening, addresses = [], {}
    for name, family, address in (
        ("loopback", socket.AF_INET, "127.0.0.1"),
        ("loopback 6", socket.AF_INET6, "::1"),
        ("a balancer's", socket.AF_INET, "127.64.9.9"),
    ):
        door = socket.create_server((address, 0), family=family)
        listening.append(door)
        addresses[name] = f"{address}:{door.getsockname()[1]}"
    abstract = f"berth-test-{os.getpid()}"
    door = socket.socket(socket.AF_UNIX)
    door.bind("\0" + abstract)
    door.listen()
    yield addresses | {"abstract": "@" + abstract}
    door.close()
    for other in listening:
        other.close()


def test_a_pod_reaches_nothing_that_listens_on_this_machines_loopback(
    cluster: DevCluster, space: str, doors: dict[str, str]
) -> None:
    port = cluster.url.rpartition(":")[2]
    wanted = doors | {
        "the API": f"127.0.0.1:{port}",
        "its port at the gateway": f"{podnetwork.ROUTER}:{port}",
    }
    assert all(came_off for name, came_off in reached_from_here(wanted).items() if "gateway" not in name)
    assert not any(reached_from_a_pod(cluster, space, wanted).values())


def test_pods_reach_each_other_and_the_world_outside(cluster: DevCluster, space: str) -> None:
    address = serving(cluster, space, "hers")
    # This machine's own address replaces the world: traffic to it leaves the pod's network by the same way.
    outside = _own_address()
    if outside is None:
        pytest.skip("this machine has no address but loopback")
    with socket.create_server((outside, 0)) as door:
        wanted = {"hers": f"{address}:8888", "world": f"{outside}:{door.getsockname()[1]}"}
        assert reached_from_a_pod(cluster, space, wanted) == {"hers": True, "world": True}


def _own_address() -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        try:
            link.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return str(link.getsockname()[0])


def test_a_proxy_on_this_machines_loopback_serves_pods_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, doors: dict[str, str]
) -> None:
    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"fetched {self.path}\n".encode())

    with http.server.HTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        for cluster in running(tmp_path, *PROCESSES, nodes=NODES):
            fetch = "import urllib.request as u; print(u.urlopen('http://berth.invalid/x').read().decode())"
            space = cluster.fresh()
            assert "fetched http://berth.invalid/x" in output(cluster, space, python("p", fetch))
            beside = {"beside": f"{podnetwork.GATEWAY}:{doors['loopback'].rpartition(':')[2]}"}
            assert reached_from_a_pod(cluster, space, beside) == {"beside": False}
        server.shutdown()


def test_names_are_resolved_by_this_machines_own_resolver(cluster: DevCluster, space: str) -> None:
    text = output(cluster, space, shell("p", "cat /etc/resolv.conf"))
    assert [line for line in text.splitlines() if line.startswith("nameserver")] == [
        f"nameserver {podnetwork.NAMESERVER}"
    ]


@pytest.mark.slow
def test_every_pod_has_every_port_of_its_own_also_the_low_ones(cluster: DevCluster, space: str) -> None:
    """Bind a low port by wildcard, as most programs do: other pods do not matter."""
    addresses = {serving(cluster, space, name) for name in ("a", "b")}
    assert len(addresses) == 2
    listen = "import socket; socket.create_server(('', 80)); print('listens')"
    assert output(cluster, space, python("low", listen)) == "listens\n"


STEAL = """
import socket, sys, time
IP_FREEBIND = 15
while True:
    try:
        link = socket.socket()
        link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        link.setsockopt(socket.SOL_IP, IP_FREEBIND, 1)
        link.bind((sys.argv[1], 8888))
        break
    except OSError:
        time.sleep(0.1)
link.listen()
print("lies in wait", flush=True)
time.sleep(60)
"""


def stolen(cluster: DevCluster, space: str) -> bool:
    """Return True if another pod answers at a pod's address once that pod is gone."""
    address = serving(cluster, space, "hers", "--bind $POD_IP")
    cluster.create(f"{space}/pods", python("thief", STEAL, address))
    cluster.until(f"{space}/pods/thief", is_ready)
    cluster.call("DELETE", f"{space}/pods/hers", {"gracePeriodSeconds": 0})
    cluster.until(f"{space}/pods/hers", is_gone)
    cluster.until(f"{space}/pods/thief/log", lambda text: "lies in wait" in text)
    return bool(reached_from_a_pod(cluster, space, {"hers": f"{address}:8888"})["hers"])


@pytest.mark.slow
def test_who_binds_another_pods_address_hears_nothing(cluster: DevCluster, space: str) -> None:
    assert not stolen(cluster, space)


class WithoutTheProgram(DevCluster):
    """Devcluster as on a machine without slirp4netns."""

    program = (
        "-c",
        (
            "from devcluster.kubelet.network import podnetwork as p; from devcluster.__main__ import main; "
            "p._PATH = '/nowhere'; main()"
        ),
    )


@pytest.mark.slow
def test_on_a_shared_network_the_same_attacks_come_off(tmp_path: Path, doors: dict[str, str]) -> None:
    for cluster in running(tmp_path, *PROCESSES, nodes=NODES, kind=WithoutTheProgram):
        space = cluster.fresh()
        assert all(reached_from_a_pod(cluster, space, doors).values())
        assert stolen(cluster, cluster.fresh())


def test_a_clouds_credentials_are_out_of_reach(cluster: DevCluster, space: str) -> None:
    text = output(cluster, space, shell("p", "cat /proc/net/route"))
    rows = [line.split() for line in text.splitlines()]
    refused = {(row[1], row[7]) for row in rows if row[0] == "*"}  # no device: refused at once
    assert refused == {(_of_kernel(net.network_address), _of_kernel(net.netmask)) for net in CREDENTIALS}


CREDENTIALS = [
    IPv4Network(net) for net in ("169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32")
]


def _of_kernel(address: IPv4Address) -> str:
    """Return the address as /proc/net/route has it."""
    return address.packed[::-1].hex().upper()


def test_a_probe_may_not_be_pointed_at_this_machine(cluster: DevCluster, space: str) -> None:
    """Point a probe at a host of this machine: a pod's spec must not make the kubelet call it."""
    asked = threading.Event()

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.set()

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        body = shell("p", "sleep 60")
        probe = {
            "httpGet": {"host": "127.0.0.1", "path": "/", "port": server.server_port},
            "periodSeconds": 1,
        }
        body["spec"]["containers"][0]["readinessProbe"] = probe
        cluster.create(f"{space}/pods", body)
        told = cluster.until(f"{space}/events?fieldSelector=reason=Unhealthy", lambda o: bool(o["items"]))
        assert "connection refused" in told["items"][0]["message"]
        assert not asked.is_set()
        server.shutdown()


def test_without_slirp4netns_pods_share_this_machines_network_and_it_says_so(tmp_path: Path) -> None:
    command = [sys.executable, *WithoutTheProgram.program, "--state-dir", str(tmp_path / "state")]
    command += ["--kubeconfig", str(tmp_path / "kubeconfig")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "is ready" in process.stdout.readline()
        process.terminate()
        told = process.stderr.read().splitlines()
    assert len(told) == 1
    assert "pods share this machine's network" in told[0]
    assert "apt install slirp4netns" in told[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_network_goes_with_devcluster(tmp_path: Path, number: int) -> None:
    cluster = DevCluster(tmp_path, *PROCESSES, nodes=NODES)
    cluster.start()
    assert cluster.process is not None
    ours = {
        p for p in _children(cluster.process.pid) if "hub.py" in _command(p) or "slirp4netns" in _command(p)
    }
    assert len(ours) == 2
    cluster.end(number)
    until(lambda: not any(_command(p) for p in ours))
    cluster.start()  # after SIGKILL the next start clears the leftovers
    cluster.end()


def test_the_way_out_comes_back_should_it_be_killed(cluster: DevCluster, space: str) -> None:
    assert cluster.process is not None
    (uplink,) = [p for p in _children(cluster.process.pid) if "slirp4netns" in _command(p)]
    os.kill(uplink, signal.SIGKILL)
    outside = _own_address()
    if outside is None:
        pytest.skip("this machine has no address but loopback")
    with socket.create_server((outside, 0)) as door:
        wanted = json.dumps({"world": f"{outside}:{door.getsockname()[1]}"})
        for n in range(20):
            body = python(f"p{n}", ATTACKS.read_text(), "reach", wanted)
            if found(output(cluster, space, body))["world"]:
                return
            time.sleep(0.5)
    pytest.fail("no way out again")


def _children(parent: int) -> list[int]:
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in found.stdout.split()]


def _command(pid: int) -> str:
    """Return a process's command, or an empty string if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
