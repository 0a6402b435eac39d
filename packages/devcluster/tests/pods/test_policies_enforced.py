"""NetworkPolicies hold between real pods: before their first process runs, and again after each change."""

import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.kubelet.network import podnetwork
from devcluster.testing.cluster import ROOT, DevCluster, is_ready, running
from devcluster.testing.kube import Obj
from devcluster.testing.waiting import until
from helpers.shells import ATTACKS, NODES, PROCESSES, attack, found, output, python, shell

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not ROOT or not all(map(shutil.which, ("slirp4netns", "nft"))),
        reason="rules for pods need root here, slirp4netns and nft",
    ),
]
ARGUMENTS = PROCESSES
SERVE = "cd /tmp && echo hello >index.html && python -m http.server 2222 & cd /tmp; exec python -m http.server 8888"
PROBE = {"httpGet": {"path": "/", "port": 8888}, "periodSeconds": 1}
ONCE = "import socket, sys; s = socket.socket(); s.settimeout(3); print(s.connect_ex((sys.argv[1], 8888)))"
FLUSH = """
import socket, sys
link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
link.bind((0, 0))
link.send(bytes.fromhex(sys.argv[1]))
print(link.recv(999).hex())
"""
WATCH = """
import json, socket, sys, time
while True:
    try:
        socket.create_connection((sys.argv[1], 8888), 1).close()
        print("reached", flush=True)
    except OSError:
        print("refused", flush=True)
    time.sleep(0.2)
"""


def serving(cluster: DevCluster, space: str, name: str, **labels: str) -> str:
    """Return the address of a pod that answers at the ports 8888 and 2222. The kubelet's probe has reached it."""
    body = shell(name, SERVE)
    body["metadata"]["labels"] = {"app": name, **labels}
    body["spec"]["containers"][0]["readinessProbe"] = PROBE
    body["spec"]["containers"][0]["ports"] = [{"name": "ssh", "containerPort": 2222}]
    cluster.create(f"{space}/pods", body)
    return str(cluster.until(f"{space}/pods/{name}", is_ready)["status"]["podIP"])


def policy(cluster: DevCluster, space: str, name: str = "p", **spec: object) -> None:
    path = space.replace("/api/v1/", "/apis/networking.k8s.io/v1/") + "/networkpolicies"
    body: Obj = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name}}
    code, told = cluster.apply(f"{path}/{name}", body | {"spec": {"podSelector": {}} | spec})
    assert code in (200, 201), told


def reached(cluster: DevCluster, space: str, **wanted: str) -> dict[str, bool]:
    """Return what a new pod of this namespace reaches."""
    body = python("", ATTACKS.read_text(), "reach", json.dumps(wanted))
    body["metadata"] = {"name": f"try-{reached.__dict__.setdefault('n', 0)}", "labels": {"app": "try"}}
    reached.__dict__["n"] += 1
    return dict(found(output(cluster, space, body)))


def test_a_pod_is_reached_by_whom_a_policy_allows_and_by_its_node(cluster: DevCluster, space: str) -> None:
    policy(
        cluster,
        space,
        ingress=[
            {
                "from": [{"namespaceSelector": {"matchLabels": {"team": "friends"}}}],
                "ports": [{"port": "ssh"}],
            },
        ],
    )
    address = serving(cluster, space, "hers")  # its readiness probe comes from the node and passes
    friends, strangers = cluster.fresh(team="friends"), cluster.fresh()
    doors = {"jupyter": f"{address}:8888", "ssh": f"{address}:2222"}
    assert reached(cluster, friends, **doors) == {"jupyter": False, "ssh": True}
    assert reached(cluster, strangers, **doors) == {"jupyter": False, "ssh": False}
    assert reached(cluster, space, **doors) == {"jupyter": False, "ssh": False}
    name = strangers.rpartition("/")[2]
    code, _ = cluster.call(
        "PATCH", f"/api/v1/namespaces/{name}", {"metadata": {"labels": {"team": "friends"}}}, "merge"
    )
    assert code == 200
    until(lambda: reached(cluster, strangers, **doors) == {"jupyter": False, "ssh": True})


def test_a_service_leads_to_a_pod_that_no_other_pod_reaches(cluster: DevCluster, space: str) -> None:
    policy(cluster, space)
    serving(cluster, space, "hers")
    spec = {"type": "LoadBalancer", "selector": {"app": "hers"}, "ports": [{"port": 80, "targetPort": 8888}]}
    cluster.create(f"{space}/services", {"metadata": {"name": "s"}, "spec": spec})
    told = cluster.until(f"{space}/services/s", lambda o: bool(o["status"].get("loadBalancer")))
    door = f"{told['status']['loadBalancer']['ingress'][0]['ip']}:80"
    command = [sys.executable, "-c", ATTACKS.read_text(), "reach", json.dumps({"service": door})]
    here = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert found(here) == {"service": True}


def test_what_a_pod_may_reach_is_what_its_policy_names(cluster: DevCluster, space: str) -> None:
    others = cluster.fresh()
    one, other = serving(cluster, others, "one"), serving(cluster, others, "other")
    blocks = [{"ipBlock": {"cidr": podnetwork.NETWORK, "except": [f"{other}/32"]}}]
    policy(cluster, space, policyTypes=["Egress"], egress=[{"to": blocks, "ports": [{"port": 8888}]}])
    doors = {"one": f"{one}:8888", "one's ssh": f"{one}:2222", "other": f"{other}:8888"}
    assert reached(cluster, space, **doors) == {"one": True, "one's ssh": False, "other": False}


def test_a_policy_holds_before_a_pods_first_process_runs(cluster: DevCluster, space: str) -> None:
    address = serving(cluster, cluster.fresh(), "hers")
    policy(cluster, space, policyTypes=["Egress"])
    assert output(cluster, space, python("first", ONCE, address)).strip() != "0"


def test_a_change_holds_for_pods_that_run(cluster: DevCluster, space: str) -> None:
    address = serving(cluster, cluster.fresh(), "hers")
    cluster.create(f"{space}/pods", python("watch", WATCH, address))

    def ends_with(word: str) -> None:
        cluster.until(f"{space}/pods/watch/log", lambda text: str(text).split()[-2:] == [word] * 2)

    ends_with("reached")
    policy(cluster, space, policyTypes=["Egress"])
    ends_with("refused")
    policy(cluster, space, policyTypes=["Egress"], egress=[{"ports": [{"port": 8888}]}])
    ends_with("reached")


def test_a_pod_cannot_change_its_rules(cluster: DevCluster, space: str) -> None:
    address = serving(cluster, cluster.fresh(), "hers")
    policy(cluster, space, policyTypes=["Egress"])
    tries = f"PATH=$PATH:/usr/sbin; nft flush ruleset; ip link add x type dummy; python -c '{ONCE}' {address}"
    assert output(cluster, space, shell("p", tries)).splitlines()[-1] != "0"
    # What `nft flush ruleset` sends: a batch's begin, the deletion of all tables, and the batch's end.
    parts = (
        "14000000100001000000000000000000" + "0000000a",
        "14000000020a05000100000000000000" + "00000000",
        "14000000110001000200000000000000" + "0000000a",
    )
    told = bytes.fromhex(output(cluster, space, python("n", FLUSH, "".join(parts))).strip())
    assert int.from_bytes(told[16:20], "little", signed=True) == -errno.EPERM


def test_another_pod_that_gets_an_address_gets_no_old_right(cluster: DevCluster, space: str) -> None:
    """Rules name addresses: when an allowed pod ends, its address leaves the rules."""
    policy(cluster, space, ingress=[{"from": [{"podSelector": {"matchLabels": {"app": "friend"}}}]}])
    address = serving(cluster, space, "hers")
    cluster.create(f"{space}/pods", python("friend", WATCH, address))
    cluster.until(f"{space}/pods/friend/log", lambda text: "reached" in str(text))
    cluster.call("PATCH", f"{space}/pods/friend", {"metadata": {"labels": {"app": "stranger"}}}, "merge")
    cluster.until(f"{space}/pods/friend/log", lambda text: str(text).split()[-2:] == ["refused"] * 2)


class WithoutNft(DevCluster):
    """Devcluster as on a machine without nftables."""

    program = (
        "-c",
        (
            "from devcluster.kubelet.network import podnetwork as p; from devcluster.__main__ import main; "
            "p._NFT = 'no-nft'; main()"
        ),
    )


def test_without_nft_the_same_attack_comes_off_and_devcluster_says_so_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for cluster in running(tmp_path, *PROCESSES, nodes=NODES, kind=WithoutNft):
        space = cluster.fresh()
        policy(cluster, space)
        address = serving(cluster, space, "hers")
        assert attack(cluster, cluster.fresh(), "reach", json.dumps({"hers": f"{address}:8888"})) == {
            "hers": True
        }
    told = [line for line in capfd.readouterr().err.splitlines() if "NetworkPolicies" in line]
    assert len(told) == 1
    assert "not enforced" in told[0]
    assert "apt install nftables" in told[0]
