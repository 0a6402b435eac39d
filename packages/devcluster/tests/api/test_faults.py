"""Faults: switched on by the admin, met by the calls, watches and pulls that they match, and ended again."""

import http.client
import json
import threading
import time
import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.faults.pullfaults import words
from devcluster.testing.cluster import DevCluster, is_gone, is_ready, pod
from devcluster.testing.waiting import until

NODES = """
nodes:
  - {name: one, count: 2, cpu: 16, memory: 64Gi}
images:
  docker.io/local/here:1: {}
  docker.io/local/slow:1: {}
played: {start_seconds: 0.05, ready_seconds: 0.05, stop_seconds: 0.1}
back_off: {first_seconds: 0.5}
faults:
  - {image: "docker.io/local/slow:1", seconds: 1.5}
  - {gremlins: 3}
"""


@pytest.fixture
def space(cluster: DevCluster) -> Iterator[str]:
    path = cluster.fresh()
    yield path
    for fault in cluster.get("/_faults")["faults"]:
        if "slow" not in fault.get("image", ""):
            cluster.call("DELETE", f"/_faults/{fault['id']}")
    cluster.call("DELETE", path)


def hits(cluster: DevCluster, fault: int) -> int:
    return next(int(f["hits"]) for f in cluster.get("/_faults")["faults"] if f["id"] == fault)


def config_map(name: str = "c") -> dict[str, Any]:
    return {"metadata": {"name": name}}


def test_a_spec_that_names_no_fault_is_told_which_there_are(cluster: DevCluster, space: str) -> None:
    code, told = cluster.call("POST", "/_faults", {"gremlins": 3})
    assert code == 400
    assert told["message"].startswith("a fault names one of: latency_ms, status, hold, reset, drop_watches,")
    assert told["message"].endswith("given: gremlins")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"node": "one-1", "colour": "red"}, "unknown in this fault: colour; node knows "),
        ({"node": "three", "state": "off"}, 'no node "three" is played; there are: one-1, one-2'),
        ({"node": "one-1", "state": "tired"}, 'unknown state "tired"; it is one of: unreachable, off, '),
        ({"node": "one-1"}, "say what ails the node: "),
        ({"status": 503, "match": {"mood": "bad"}}, "unknown match: mood; it knows kind, method, "),
        ({"status": 503, "match": ["kind"]}, "match is an object"),
        ({"status": 200}, "status is one from 400 to 599"),
        ({"hold": "during"}, 'unknown hold "during"; it is one of: before, after'),
        ({"latency_ms": "long"}, "latency_ms is a number, 0 or more"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused_in_words(
    cluster: DevCluster, space: str, spec: dict[str, Any], words: str
) -> None:
    code, told = cluster.call("POST", "/_faults", spec)
    assert code == 400
    assert told["message"].startswith(words), told["message"]


def test_only_the_admin_switches_faults(cluster: DevCluster, space: str) -> None:
    admin = {"metadata": {"name": "almighty"}, "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}}
    namespace = space.rpartition("/")[2]
    admin["roleRef"]["apiGroup"] = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    cluster.create(bindings, admin | {"subjects": [subject]})
    token = cluster.create(f"{space}/serviceaccounts/default/token", {"spec": {}})["status"]["token"]
    bearer = {"Authorization": f"Bearer {token}"}
    assert cluster.call("GET", "/api/v1/nodes", headers=bearer)[0] == 200
    code, told = cluster.call("POST", "/_faults", {"expire_watches": True}, headers=bearer)
    assert code == 403
    assert told["message"].endswith("only the admin switches faults")
    cluster.call("DELETE", f"{bindings}/almighty")


def test_calls_are_matched_by_what_they_are_and_by_who_asks(cluster: DevCluster, space: str) -> None:
    match = {"method": "GET", "path": "*/configmaps/c-*", "kind": "ConfigMap", "user_agent": "tests/*"}
    fault = cluster.switch(status=503, match=match)
    assert cluster.call("GET", f"{space}/configmaps/c-1")[0] == 503
    for path in ("configmaps/d-1", "secrets/c-1"):
        assert cluster.call("GET", f"{space}/{path}")[0] == 404
    assert cluster.call("DELETE", f"{space}/configmaps/c-1")[0] == 404
    assert cluster.call("GET", f"{space}/configmaps/c-1", headers={"User-Agent": "kubectl/1"})[0] == 404
    assert hits(cluster, fault) == 1


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (500, "InternalError", "Internal error occurred: etcdserver: request timed out"),
        (503, "ServiceUnavailable", "the server is currently unable to handle the request"),
        (504, "Timeout", "Timeout: request did not complete within the allotted duration"),
    ],
)
def test_refusals_speak_as_the_api_server_does(
    cluster: DevCluster, space: str, status: int, reason: str, message: str
) -> None:
    cluster.switch(status=status, times=1, match={"namespace": space.rpartition("/")[2]})
    code, told = cluster.call("GET", f"{space}/configmaps/c")
    assert (code, told["reason"], told["message"]) == (status, reason, message)
    assert cluster.call("GET", f"{space}/configmaps/c")[0] == 404


def test_too_many_requests_says_when_to_come_back(cluster: DevCluster, space: str) -> None:
    cluster.switch(status=429, retry_after=7, match={"resource": "configmaps"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        cluster.open("GET", f"{space}/configmaps")
    assert (refused.value.code, refused.value.headers["Retry-After"]) == (429, "7")


def test_a_share_of_the_calls_can_fail(cluster: DevCluster, space: str) -> None:
    cluster.switch(status=500, share=0.5, match={"resource": "configmaps"})
    codes = {cluster.call("GET", f"{space}/configmaps")[0] for _ in range(60)}
    assert codes == {200, 500}


def test_an_api_that_is_down_does_not_even_say_its_version(cluster: DevCluster, space: str) -> None:
    down = cluster.switch(status=503)
    assert {cluster.call("GET", path)[0] for path in ("/version", "/readyz", "/apis", "/api/v1/nodes")} == {
        503
    }
    assert cluster.call("DELETE", f"/_faults/{down}")[0] == 200
    assert cluster.call("GET", "/version")[0] == 200


@pytest.mark.parametrize(("when", "done"), [("before", False), ("after", True)])
def test_a_held_call_waits_exactly_before_or_after_its_deed(
    cluster: DevCluster, space: str, when: str, done: bool
) -> None:
    held = cluster.switch(hold=when, match={"verb": "create", "resource": "configmaps"})
    answers: list[int] = []
    caller = threading.Thread(
        target=lambda: answers.append(cluster.call("POST", f"{space}/configmaps", config_map())[0])
    )
    caller.start()
    until(lambda: hits(cluster, held) == 1)
    if done:
        cluster.until(f"{space}/configmaps/c", lambda o: o["kind"] == "ConfigMap")
    else:
        assert is_gone(cluster.get(f"{space}/configmaps/c"))
    assert answers == []
    cluster.call("DELETE", f"/_faults/{held}")
    caller.join(30)
    assert answers == [201]


@pytest.mark.parametrize(("when", "done"), [("before", False), ("middle", True), ("after", True)])
def test_a_connection_breaks_with_the_deed_done_or_not(
    cluster: DevCluster, space: str, when: str, done: bool
) -> None:
    cluster.switch(reset=when, times=1, match={"verb": "create", "resource": "configmaps"})
    with pytest.raises((OSError, http.client.HTTPException)) as broken:
        cluster.call("POST", f"{space}/configmaps", config_map())
    assert not isinstance(broken.value, urllib.error.HTTPError)
    assert is_gone(cluster.get(f"{space}/configmaps/c")) is not done


def test_a_slow_call_is_late_and_right(cluster: DevCluster, space: str) -> None:
    cluster.switch(latency_ms=400, match={"resource": "configmaps"})
    began = time.monotonic()
    assert cluster.call("GET", f"{space}/configmaps")[0] == 200
    assert time.monotonic() - began >= 0.4


def watched(cluster: DevCluster, space: str, seconds: int) -> Any:
    since = cluster.get(f"{space}/configmaps")["metadata"]["resourceVersion"]
    return cluster.open(
        "GET", f"{space}/configmaps", watch="1", timeoutSeconds=str(seconds), resourceVersion=since
    )


def test_open_watches_can_be_ended(cluster: DevCluster, space: str) -> None:
    with watched(cluster, space, 60) as answer:
        cluster.switch(drop_watches=True, match={"resource": "configmaps"})
        assert list(answer) == []


def test_open_watches_can_break_in_the_middle_of_a_line(cluster: DevCluster, space: str) -> None:
    with watched(cluster, space, 60) as answer:
        cluster.create(f"{space}/configmaps", config_map())
        assert json.loads(next(answer))["type"] == "ADDED"
        cluster.switch(reset_watches=True)
        with pytest.raises((OSError, http.client.HTTPException, ValueError)):
            for line in answer:
                json.loads(line)


@pytest.mark.slow
def test_a_silent_watch_says_nothing_until_it_is_heard_again(cluster: DevCluster, space: str) -> None:
    silent = cluster.switch(silent_watches=True, match={"resource": "configmaps"})
    lines: list[bytes] = []
    with watched(cluster, space, 60) as answer:
        reader = threading.Thread(target=lambda: lines.append(next(answer)))
        reader.start()
        cluster.create(f"{space}/configmaps", config_map())
        until(lambda: hits(cluster, silent) == 1)
        time.sleep(0.5)
        assert lines == []
        cluster.call("DELETE", f"/_faults/{silent}")
        reader.join(30)
    assert [json.loads(line)["type"] for line in lines] == ["ADDED"]


@pytest.mark.parametrize(
    ("error", "part"),
    [
        ("not-found", "rpc error: code = NotFound desc = failed to pull and unpack image"),
        ("unauthorized", "pull access denied, repository does not exist or may require authorization"),
        ("rate-limit", "toomanyrequests: You have reached your unauthenticated pull rate limit"),
        ("no-space", "no space left on device"),
        ("timeout", 'Head "https://registry-1.docker.io/v2/local/here/manifests/1": dial tcp: i/o timeout'),
        ("a {text} of one's own", "a {text} of one's own"),
    ],
)
def test_pull_errors_speak_as_containerd_does(error: str, part: str) -> None:
    assert part in words(error, "docker.io/local/here:1")


def image_pod(reference: str, **spec: Any) -> dict[str, Any]:
    body = pod("p", **spec)
    body["spec"]["containers"][0] |= {"image": reference, "imagePullPolicy": "Always"}
    return body


def test_a_pull_fails_for_the_images_that_are_named_and_works_again(cluster: DevCluster, space: str) -> None:
    denied = cluster.switch(image="docker.io/local/*", error="unauthorized")
    cluster.create(f"{space}/pods", image_pod("docker.io/local/here:1"))
    found = cluster.until(f"{space}/pods/p", lambda o: "ErrImagePull" in str(o["status"]))
    assert "pull access denied" in str(found["status"])
    cluster.call("DELETE", f"/_faults/{denied}")
    cluster.until(f"{space}/pods/p", is_ready)


def test_the_node_file_switches_faults_on_from_the_start_and_skips_what_makes_no_sense(
    cluster: DevCluster, space: str
) -> None:
    cluster.create(f"{space}/pods", image_pod("docker.io/local/slow:1"))
    cluster.until(f"{space}/pods/p", is_ready)
    events = cluster.get(f"{space}/events", fieldSelector="reason=Pulled")["items"]
    assert "in 1.5s" in events[0]["message"]
