"""Pods as local processes: their rights inside, access from outside, and their end."""

import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from pathlib import Path

import pytest

from devcluster.testing.cluster import DevCluster, is_gone, is_ready
from devcluster.testing.kube import Obj
from devcluster.testing.waiting import until
from helpers.shells import NODES, PROCESSES, disk, output, process_pods, shell

pytestmark = process_pods
ARGUMENTS = PROCESSES


def test_its_cpu_and_memory_are_measured(cluster: DevCluster, space: str) -> None:
    cluster.create(f"{space}/pods", shell("busy", "python -c 'x = bytearray(80 * 2**20)\nwhile True: pass'"))
    told = f"/apis/metrics.k8s.io/v1beta1/namespaces/{space.rpartition('/')[2]}/pods/busy"

    def busy(found: Obj) -> bool:
        usage = found["containers"][0]["usage"] if "containers" in found else {"cpu": "0", "memory": "0"}
        cores, kibibytes = int(usage["cpu"].removesuffix("n")) / 1e9, int(usage["memory"].removesuffix("Ki"))
        return 0.2 < cores < 1.5 and 80 * 1024 < kibibytes < 400 * 1024

    cluster.until(told, busy)
    cluster.call("DELETE", f"{space}/pods/busy", gracePeriodSeconds=0)


def test_inside_it_is_the_images_user_without_any_right(cluster: DevCluster, space: str) -> None:
    text = output(
        cluster,
        space,
        shell("p", "id; grep -E '^(Cap|NoNewPrivs)' /proc/self/status; hostname; ps ax | wc -l"),
    )
    assert text.startswith("uid=1000(jovyan) gid=1000(jovyan) groups=1000(jovyan)\n")
    assert text.count("0000000000000000") == 5
    assert "NoNewPrivs:\t1" in text
    lines = text.splitlines()
    assert lines[-2] == "p"
    assert int(lines[-1]) < 8


def test_inside_nothing_of_this_machine_but_programs_can_be_read(cluster: DevCluster, space: str) -> None:
    hidden = [
        cluster.state,
        cluster.kubeconfig,
        "/etc/shadow",
        "/sys/fs/cgroup",
        "/run/lock",
        Path.home() / ".bashrc",
    ]
    script = "; ".join(f"cat {p} 2>/dev/null || ls {p} 2>/dev/null && echo SEEN {p}" for p in hidden)
    text = output(
        cluster,
        space,
        shell("p", f"{script}; touch /usr/x /x 2>/dev/null && echo WROTE; ls -A /root /home; true"),
    )
    assert "SEEN" not in text
    assert "WROTE" not in text


def test_inside_one_cannot_become_root_of_a_namespace_of_ones_own(cluster: DevCluster, space: str) -> None:
    text = output(cluster, space, shell("p", "unshare -Ur id 2>&1 || echo refused"))
    assert text.splitlines()[-1] == "refused"


def test_inside_the_output_can_be_opened_by_its_name(cluster: DevCluster, space: str) -> None:
    text = output(cluster, space, shell("p", "echo one >/dev/stdout; echo two >/dev/stderr"))
    assert sorted(text.splitlines()) == ["one", "two"]  # two pipes: either may be read first


def test_inside_the_number_of_processes_has_an_end(cluster: DevCluster, space: str) -> None:
    text = output(cluster, space, shell("p", "grep 'Max processes' /proc/self/limits"))
    assert text.split()[2:4] == ["4096", "4096"]


def test_the_image_comes_first_on_path(cluster: DevCluster, space: str) -> None:
    text = output(cluster, space, shell("p", "python -c 'import sys; print(sys.prefix)'"))
    assert text.strip() == sys.prefix


def test_files_on_a_disk_are_the_next_pods_own_and_no_other_pods(cluster: DevCluster, space: str) -> None:
    mounts = {"/home/jovyan": disk(cluster, space, "d")}
    output(cluster, space, shell("first", "echo kept >/home/jovyan/f && chmod 600 /home/jovyan/f", mounts))
    assert (
        output(cluster, space, shell("second", "cat ~/f && echo more >>~/f && stat -c %U ~/f", mounts))
        == "kept\njovyan\n"
    )
    elsewhere = cluster.state / "mounts"
    seen = output(cluster, space, shell("third", f"ls -R {elsewhere} / 2>/dev/null | grep -c 'd/f' ; true"))
    assert seen.strip() == "0"


def test_a_link_in_a_volume_leads_no_mount_out_of_the_pod(
    cluster: DevCluster, space: str, tmp_path: Path
) -> None:
    home = {"/home/jovyan": disk(cluster, space, "d")}
    output(cluster, space, shell("first", f"ln -s {tmp_path} ~/way", home))
    cluster.create(f"{space}/pods", shell("second", "true", home | {"/home/jovyan/way/in": {"emptyDir": {}}}))
    cluster.until(f"{space}/pods/second", lambda o: "StartError" in str(o["status"]))
    assert list(tmp_path.iterdir()) == []


def test_a_disk_has_its_size_and_grows_at_once_or_for_the_next_pod(cluster: DevCluster, space: str) -> None:
    mounts = {"/data": disk(cluster, space, "d", "8Mi")}
    claim = f"{space}/persistentvolumeclaims/d"
    fill = "dd if=/dev/zero of=/data/f bs=1M count=20 2>&1 || true; sleep 60"
    cluster.create(f"{space}/pods", shell("p", fill, mounts))
    cluster.until(f"{space}/pods/p/log", lambda text: "No space left on device" in text)
    cluster.call("PATCH", claim, {"spec": {"resources": {"requests": {"storage": "40Mi"}}}}, "merge")
    told = ("40Mi", "FileSystemResizePending")
    cluster.until(claim, lambda o: any(word in str(o["status"]) for word in told))
    cluster.call("DELETE", f"{space}/pods/p")
    cluster.until(f"{space}/pods/p", is_gone)
    text = output(
        cluster, space, shell("q", "stat -c %s /data/f >&2; df -m --output=size /data | tail -1", mounts)
    )
    assert int(text.split()[-1]) > 30
    cluster.until(claim, lambda o: o["status"]["capacity"]["storage"] == "40Mi")


@pytest.mark.slow
def test_a_secret_mounted_as_a_directory_follows_the_object(cluster: DevCluster, space: str) -> None:
    cluster.create(f"{space}/secrets", {"metadata": {"name": "s"}, "stringData": {"k": "one"}})
    mounts = {"/secret": {"secret": {"secretName": "s", "defaultMode": 0o440}}}
    script = "stat -Lc %a /secret/k; cat /secret/k; echo; until grep -q two /secret/k; do sleep 0.1; done; echo NEW"
    cluster.create(f"{space}/pods", shell("p", script, mounts))
    cluster.until(f"{space}/pods/p/log", lambda text: text == "440\none\n")
    cluster.call("PATCH", f"{space}/secrets/s", {"stringData": {"k": "two"}}, "merge")
    cluster.until(f"{space}/pods/p/log", lambda text: "NEW" in text)


def test_a_progress_bar_stays_one_line_of_the_log(cluster: DevCluster, space: str) -> None:
    assert output(cluster, space, shell("p", r"printf '10%%\r20%%\r done\n'")) == "10%\r20%\r done\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "phase"),
    [
        ("trap 'exit 0' TERM; echo set; sleep 600 & wait", "Succeeded"),
        ("trap '' TERM; echo set; sleep 600", "Failed"),
    ],
)
def test_deletion_asks_then_kills_and_the_end_is_told(
    cluster: DevCluster, space: str, script: str, phase: str
) -> None:
    body = shell("p", script)
    body["metadata"]["finalizers"] = ["berth.dev/end-seen"]
    cluster.create(f"{space}/pods", body)
    cluster.until(f"{space}/pods/p/log", lambda text: text == "set\n")
    cluster.call("DELETE", f"{space}/pods/p")
    cluster.until(f"{space}/pods/p", lambda o: o["status"]["phase"] == phase)
    cluster.call("PATCH", f"{space}/pods/p", {"metadata": {"finalizers": None}}, "merge")
    cluster.until(f"{space}/pods/p", is_gone)


def test_probes_and_the_load_balancer_reach_the_pods_own_address(cluster: DevCluster, space: str) -> None:
    body = shell("p", "cd /tmp && echo hello >index.html && exec python -m http.server --bind $POD_IP 8888")
    probe = {"httpGet": {"path": "/", "port": 8888}, "periodSeconds": 1}
    body["spec"]["containers"][0]["readinessProbe"] = probe
    body["spec"]["containers"][0]["ports"] = [{"name": "web", "containerPort": 8888}]
    cluster.create(f"{space}/pods", body)
    spec = {"type": "LoadBalancer", "selector": {"app": "p"}, "ports": [{"port": 22, "targetPort": "web"}]}
    cluster.create(f"{space}/services", {"metadata": {"name": "s"}, "spec": spec})
    pod = cluster.until(f"{space}/pods/p", is_ready)
    service = cluster.until(f"{space}/services/s", lambda o: bool(o["status"]["loadBalancer"]))
    address = service["status"]["loadBalancer"]["ingress"][0]["ip"]
    assert address != pod["status"]["podIP"]
    with socket.create_connection((address, 22), 30) as link:
        link.sendall(b"GET / HTTP/1.0\r\n\r\n")
        link.shutdown(socket.SHUT_WR)
        answer = b""
        while part := link.recv(4096):
            answer += part
    assert answer.endswith(b"hello\n")


def test_a_port_of_the_nodes_leads_to_the_pod_and_is_one_services_alone(
    cluster: DevCluster, space: str
) -> None:
    body = shell("np", "cd /tmp && echo hello >index.html && exec python -m http.server --bind $POD_IP 8888")
    probe = {"httpGet": {"path": "/", "port": 8888}, "periodSeconds": 1}
    body["spec"]["containers"][0]["readinessProbe"] = probe
    cluster.create(f"{space}/pods", body)
    spec = {"type": "NodePort", "selector": {"app": "np"}, "ports": [{"port": 80, "targetPort": 8888}]}
    service = cluster.create(f"{space}/services", {"metadata": {"name": "np"}, "spec": spec})
    [port] = service["spec"]["ports"]
    assert 30000 <= port["nodePort"] <= 32767
    address = cluster.until(f"{space}/pods/np", is_ready)["status"]["hostIP"]
    with urllib.request.urlopen(f"http://{address}:{port['nodePort']}/", timeout=30) as answer:
        assert answer.read() == b"hello\n"

    taken = {"type": "NodePort", "ports": [{"port": 1, "nodePort": port["nodePort"]}]}
    status, refusal = cluster.call(
        "POST", f"{space}/services", {"metadata": {"name": "other"}, "spec": taken}
    )
    assert status == 422
    assert "provided port is already allocated" in refusal["message"]

    change = {"spec": {"ports": [{"port": 80, "targetPort": 8889, "protocol": "TCP"}]}}
    _, kept = cluster.call("PATCH", f"{space}/services/np", change, "merge")
    assert kept["spec"]["ports"][0]["nodePort"] == port["nodePort"]
    _, closed = cluster.call("PATCH", f"{space}/services/np", {"spec": {"type": "ClusterIP"}}, "merge")
    assert "nodePort" not in closed["spec"]["ports"][0]
    until_refused(address, port["nodePort"])


def until_refused(address: str, port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            socket.create_connection((address, port), 1).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.05)
    pytest.fail(f"{port} still answers")


@pytest.mark.slow
@pytest.mark.parametrize("number", [15, 9])
def test_no_process_outlives_the_cluster(tmp_path: Path, number: int) -> None:
    mark = f"sleep 1000.{uuid.uuid4().int}"
    cluster = DevCluster(tmp_path, *PROCESSES, nodes=NODES)
    cluster.start()
    space = cluster.namespace("t")
    mounts = {"/data": disk(cluster, space, "d")}
    deaf = shell("p", f"trap '' TERM; {mark} & wait", mounts, terminationGracePeriodSeconds=600)
    cluster.create(f"{space}/pods", deaf)
    until(lambda: mark in said("ps", "ax", "-o", "args").splitlines())
    cluster.end(number)
    until(lambda: mark not in said("ps", "ax", "-o", "args").splitlines())
    until(lambda: str(tmp_path) not in Path("/proc/self/mounts").read_text())
    until(lambda: str(tmp_path) not in said("losetup", "-a"))
    cluster.start()
    assert cluster.get(f"{space}/pods/p")["status"]["reason"] == "Terminated"
    cluster.end()


def said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True).stdout
