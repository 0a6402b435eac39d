"""kubectl reads: get in all its forms, describe, events, and questions about the server itself."""

import json

import pytest
import yaml

from devcluster.testing.cluster import DevCluster, stateful_set
from helpers.kubectl import Kubectl, claim, columns, config_map, needs_kubectl, service, until_line

pytestmark = needs_kubectl


@pytest.fixture(scope="module")
def kubectl(cluster: DevCluster, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """Namespace with one running workspace: a set, its pod, a service and a disk that waits."""
    cluster.namespace("looking")
    kubectl = Kubectl(cluster.kubeconfig, tmp_path_factory.mktemp("home"), "looking")
    kubectl.apply(stateful_set("ws"), service(), claim())
    kubectl("rollout", "status", "statefulset/ws", "--timeout=30s")
    return kubectl


def test_get_prints_a_table(kubectl: Kubectl) -> None:
    head, row = columns(kubectl("get", "pods"))
    assert head == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:4] == ["ws-0", "1/1", "Running", "0"]
    assert row[4].endswith("s")


def test_get_wide_adds_address_and_node(kubectl: Kubectl) -> None:
    head, row = columns(kubectl("get", "pods", "-o", "wide"))
    assert head[5:] == ["IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert row[6] in ("gpu-1", "gpu-2")
    assert row[7:] == ["<none>", "<none>"]


def test_get_shows_labels_on_demand(kubectl: Kubectl) -> None:
    assert "statefulset.kubernetes.io/pod-name=ws-0" in kubectl("get", "pod", "ws-0", "--show-labels")
    head, row = columns(kubectl("get", "pods", "-L", "app"))
    assert (head[-1], row[-1]) == ("APP", "ws")


def test_get_as_yaml_json_name_and_jsonpath(kubectl: Kubectl) -> None:
    assert yaml.safe_load(kubectl("get", "pod", "ws-0", "-o", "yaml"))["kind"] == "Pod"
    found = json.loads(kubectl("get", "pods", "-o", "json"))
    assert (found["kind"], [o["kind"] for o in found["items"]]) == ("List", ["Pod"])
    assert kubectl("get", "pods", "-o", "name") == "pod/ws-0\n"
    assert kubectl("get", "pod", "ws-0", "-o", "jsonpath={.status.phase}") == "Running"
    own = kubectl("get", "pods", "-o", "custom-columns=WHO:.metadata.name,WHERE:.spec.nodeName")
    assert columns(own)[0] == ["WHO", "WHERE"]


def test_managed_fields_are_shown_only_when_asked_for(kubectl: Kubectl) -> None:
    assert "managedFields" not in kubectl("get", "pod", "ws-0", "-o", "yaml")
    assert "managedFields" in kubectl("get", "pod", "ws-0", "-o", "yaml", "--show-managed-fields")


def test_get_selects_by_label_and_field(kubectl: Kubectl) -> None:
    assert kubectl("get", "pods", "-l", "app in (ws,other)", "-o", "name") == "pod/ws-0\n"
    assert kubectl("get", "pods", "-l", "app!=ws", "-o", "name") == ""
    assert kubectl("get", "pods", "--field-selector=status.phase=Running", "-o", "name") == "pod/ws-0\n"
    told = kubectl.fails("get", "pods", "--field-selector=spec.colour=red")
    assert "field label not supported: spec.colour" in told


def test_get_all_namespaces_names_each(kubectl: Kubectl) -> None:
    head, *rows = columns(kubectl("get", "pods", "-A"))
    assert head[:2] == ["NAMESPACE", "NAME"]
    assert ["looking", "ws-0"] in [row[:2] for row in rows]


def test_get_all_lists_the_kinds_of_the_category(kubectl: Kubectl) -> None:
    found = kubectl("get", "all", "-o", "name").split()
    assert found == ["pod/ws-0", "service/ws", "statefulset.apps/ws"]


def test_get_of_what_is_not_there(kubectl: Kubectl) -> None:
    assert kubectl.fails("get", "pod", "nope") == 'Error from server (NotFound): pods "nope" not found\n'
    assert 'the server doesn\'t have a resource type "unicorns"' in kubectl.fails("get", "unicorns")
    assert kubectl("get", "pod", "nope", "--ignore-not-found") == ""
    assert kubectl.run("get", "jobs").stderr == "No resources found in looking namespace.\n"


def test_get_watches(kubectl: Kubectl) -> None:
    watching = kubectl.begin("get", "configmaps", "-w", "--output-watch-events")
    try:
        until_line(watching, "ADDED", "kube-root-ca.crt")
        kubectl.apply(config_map("seen"))
        assert until_line(watching, "ADDED", "seen").split()[2] == "0"
        kubectl("patch", "configmap", "seen", "-p", '{"data":{"a":"b"}}')
        assert until_line(watching, "MODIFIED", "seen").split()[2] == "1"
        kubectl("delete", "configmap", "seen")
        until_line(watching, "DELETED", "seen")
    finally:
        watching.kill()
        watching.wait()


def test_describe_a_pod_ends_with_its_events(kubectl: Kubectl) -> None:
    text = kubectl("describe", "pod", "ws-0")
    for part in ("Status:           Running", "Controlled By:  StatefulSet/ws", "QoS Class:", "Conditions:"):
        assert part in text
    events = text.partition("Events:")[2]
    assert "Successfully assigned looking/ws-0 to gpu-" in events
    assert [word for word in ("Scheduled", "Created", "Started") if word in events] == [
        "Scheduled",
        "Created",
        "Started",
    ]


def test_describe_a_node_tells_what_is_taken(kubectl: Kubectl) -> None:
    node = kubectl("get", "pod", "ws-0", "-o", "jsonpath={.spec.nodeName}")
    text = kubectl("describe", "node", node)
    assert "nvidia.com/gpu:     8" in text
    assert "Allocated resources:" in text
    assert any(line.split()[:2] == ["looking", "ws-0"] for line in text.splitlines())


def test_describe_a_claim_a_set_and_a_service(kubectl: Kubectl) -> None:
    waiting = kubectl("describe", "pvc", "home")
    assert "waiting for first consumer to be created before binding" in waiting
    assert "Used By:       <none>" in waiting
    workload = kubectl("describe", "statefulset", "ws")
    assert "Pods Status:        1 Running / 0 Waiting / 0 Succeeded / 0 Failed" in workload
    assert "Pod ws-0 in StatefulSet ws successful" in workload
    exposed = kubectl("describe", "service", "ws")
    assert "Selector:                 app=ws" in exposed
    assert "TargetPort:               8888/TCP" in exposed


def test_events_of_one_object(kubectl: Kubectl) -> None:
    text = kubectl("events", "--for", "pod/ws-0")
    assert "Successfully assigned looking/ws-0" in text
    assert "StatefulSet/ws" not in text
    assert "SuccessfulCreate" in kubectl("events", "--types=Normal")


def test_the_server_says_what_it_serves(kubectl: Kubectl) -> None:
    resources = kubectl("api-resources", "--no-headers")
    assert "statefulsets" in resources
    namespaced = kubectl("api-resources", "--namespaced=false", "--api-group=storage.k8s.io", "-o", "name")
    assert "storageclasses.storage.k8s.io" in namespaced.split()
    assert {"v1", "apps/v1", "batch/v1"} <= set(kubectl("api-versions").split())
    assert json.loads(kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"] == "v1.36.2"
    assert "Kubernetes control plane" in kubectl("cluster-info")
    assert kubectl("get", "--raw", "/readyz") == "ok"


def test_explain_tells_the_types_of_fields(kubectl: Kubectl) -> None:
    assert "FIELD: nodeName <string>" in kubectl("explain", "pod.spec.nodeName")
    fields = kubectl("explain", "statefulset.spec")
    assert "replicas" in fields
    assert "<PodTemplateSpec> -required-" in fields
    assert 'field "nope" does not exist' in kubectl.fails("explain", "pod.spec.nope")
