"""Names in pods: Services and the pods behind them are found as by a cluster's DNS, and lost when they are gone."""

import json
from typing import Any

import pytest

from devcluster.kubelet.network.names import lines
from devcluster.testing.cluster import DevCluster, is_ready
from devcluster.testing.kube import Obj
from helpers.shells import PROCESSES, process_pods, python, shell

pytestmark = [pytest.mark.slow, process_pods]
ARGUMENTS = PROCESSES
RANK = """
import os, socket, sys, time
own = socket.getfqdn(), os.environ["POD_IP"]
if os.environ["JOB_COMPLETION_INDEX"] == "0":
    with socket.create_server((os.environ["POD_IP"], 29500)) as door:
        link, _ = door.accept()
        link.sendall(link.recv(99).upper())
        print(*own)
else:
    while True:
        try:
            link = socket.create_connection((sys.argv[1], 29500), 1)
            break
        except OSError:
            time.sleep(0.1)
    link.sendall(b"gradients")
    print(*own, link.recv(99).decode())
"""
LOOK = """
import json, socket, sys, time
def addresses(name):
    try:
        return sorted({found[4][0] for found in socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)})
    except socket.gaierror:
        return []
before = None
while True:
    seen = {name: addresses(name) for name in sys.argv[1:]}
    if seen != before:
        print("sees", json.dumps(seen), flush=True)
    before = seen
    time.sleep(0.1)
"""


def service(cluster: DevCluster, space: str, name: str, app: str, **spec: Any) -> None:
    ports = [{"port": 80}]
    body = {"metadata": {"name": name}, "spec": {"selector": {"app": app}, "ports": ports, **spec}}
    cluster.create(f"{space}/services", body)


def looking(cluster: DevCluster, space: str, *names: str) -> str:
    """Start a pod that logs the addresses of these names whenever they change. Return the path of its log."""
    cluster.create(f"{space}/pods", python("eye", LOOK, *names))
    return f"{space}/pods/eye/log"


def sees(cluster: DevCluster, log: str, **addresses: list[str]) -> None:
    def last(text: object) -> bool:
        said = [line for line in str(text).splitlines() if line.startswith("sees ")]
        return bool(said) and json.loads(said[-1].removeprefix("sees ")) == addresses

    cluster.until(log, last)


def running_pod(cluster: DevCluster, space: str, name: str, **spec: Any) -> str:
    """Return the address of a pod behind the Services of the app `web`; its hostname is its name."""
    body = shell(name, "exec sleep 600", hostname=name, subdomain="web", **spec)
    body["metadata"]["labels"] = {"app": "web"}
    cluster.create(f"{space}/pods", body)
    found = cluster.until(f"{space}/pods/{name}", lambda o: "podIP" in o.get("status", {}))
    return str(found["status"]["podIP"])


@pytest.mark.parametrize("tail", ["", ".{}.svc.cluster.local"])
def test_ranks_of_a_job_reach_each_other_by_name(cluster: DevCluster, space: str, tail: str) -> None:
    namespace = space.rpartition("/")[2]
    service(cluster, space, "gang", "train", clusterIP="None", publishNotReadyAddresses=True)
    rank = python("", RANK, f"train-0.gang{tail.format(namespace)}")
    template = {"metadata": {"labels": {"app": "train"}}, "spec": {**rank["spec"], "subdomain": "gang"}}
    counts = {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": 0}
    jobs = space.replace("/api/v1", "/apis/batch/v1") + "/jobs"
    cluster.create(jobs, {"metadata": {"name": "train"}, "spec": {**counts, "template": template}})
    done = cluster.until(f"{jobs}/train", lambda o: o["status"].get("conditions"))
    assert done["status"]["conditions"][0]["type"] == "SuccessCriteriaMet"
    said = {}
    for pod in cluster.get(f"{space}/pods?labelSelector=app=train")["items"]:
        said[pod["spec"]["hostname"]] = _log(cluster, space, pod).split()
    full = f"gang.{namespace}.svc.cluster.local"
    assert said["train-0"][0] == f"train-0.{full}"
    assert (said["train-1"][0], said["train-1"][2]) == (f"train-1.{full}", "GRADIENTS")


def _log(cluster: DevCluster, space: str, pod: Obj) -> str:
    return str(cluster.call("GET", f"{space}/pods/{pod['metadata']['name']}/log")[1])


def test_a_service_has_the_addresses_of_its_ready_pods_until_they_are_gone(
    cluster: DevCluster, space: str
) -> None:
    namespace = space.rpartition("/")[2]
    full = f"web.{namespace}.svc.cluster.local"
    service(cluster, space, "web", "web")
    names = ["web", f"web.{namespace}", f"web.{namespace}.svc", full, "a.web", f"b.{full}", "a", "absent"]
    log = looking(cluster, space, *names)
    sees(cluster, log, **{name: [] for name in names})
    a, b = running_pod(cluster, space, "a"), running_pod(cluster, space, "b")
    both = {name: sorted([a, b]) for name in names[:4]}
    sees(cluster, log, **both, **{"a.web": [a], f"b.{full}": [b], "a": [], "absent": []})
    cluster.call("DELETE", f"{space}/pods/a")
    alone = {name: [b] for name in names[:4]}
    sees(cluster, log, **alone, **{"a.web": [], f"b.{full}": [b], "a": [], "absent": []})
    cluster.call("DELETE", f"{space}/services/web")
    sees(cluster, log, **{name: [] for name in names})


def test_an_unready_pod_has_a_name_only_if_the_service_publishes_it(cluster: DevCluster, space: str) -> None:
    service(cluster, space, "web", "web", clusterIP="None")
    service(cluster, space, "early", "web", clusterIP="None", publishNotReadyAddresses=True)
    log = looking(cluster, space, "web", "early", "a.web")
    a = running_pod(cluster, space, "a", readinessGates=[{"conditionType": "test/go"}])
    sees(cluster, log, **{"web": [], "early": [a], "a.web": []})
    go = {"status": {"conditions": [{"type": "test/go", "status": "True"}]}}
    assert cluster.call("PATCH", f"{space}/pods/a/status", go, "strategic")[0] == 200
    cluster.until(f"{space}/pods/a", is_ready)
    sees(cluster, log, **{"web": [a], "early": [a], "a.web": [a]})


def test_names_of_another_namespace_are_not_known(cluster: DevCluster, space: str) -> None:
    other = cluster.fresh()
    service(cluster, other, "web", "web")
    running_pod(cluster, other, "a")
    service(cluster, space, "web", "web")
    here = running_pod(cluster, space, "a")
    name = f"web.{other.rpartition('/')[2]}"
    sees(cluster, looking(cluster, space, "web", name), **{"web": [here], name: []})


def test_a_pod_that_goes_or_an_external_service_has_no_name() -> None:
    status = {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
    meta: Obj = {"name": "a", "labels": {"app": "web"}}
    pod: Obj = {"metadata": meta, "spec": {}, "status": status}
    web: Obj = {"metadata": {"name": "web"}, "spec": {"type": "ClusterIP", "selector": {"app": "web"}}}
    outside = {"metadata": {"name": "w"}, "spec": {**web["spec"], "type": "ExternalName"}}
    wanted = ["10.0.0.1\tweb.n.svc.cluster.local web web.n web.n.svc\n"]
    assert list(lines("n", [web, outside], [pod])) == wanted
    meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert list(lines("n", [web], [pod])) == []
    web["spec"]["publishNotReadyAddresses"] = True
    assert list(lines("n", [web], [pod])) == wanted
    status["phase"] = "Failed"
    assert list(lines("n", [web], [pod])) == []
