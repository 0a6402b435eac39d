"""Changes to an object by others, from the API server's record. Bodies as Kubernetes 1.36 returns them."""

from __future__ import annotations

from typing import Any

import pytest

from monitoring.drift.ownership import differences, pointer_to, value_at
from tests.monitoring.drift.objects import SERVICE, entry, of

CONTAINER = 'k:{"name":"workspace"}'
IMAGE: dict[str, Any] = {"f:spec": {"f:containers": {CONTAINER: {"f:image": {}}}}}
POD = {"spec": {"containers": [{"name": "side"}, {"name": "workspace", "image": "other:2"}]}}


def told(body: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    return [(one.path, one.by, one.value) for one in differences(body)]


def test_a_changed_image_is_shown_with_who_set_it() -> None:
    made = entry("berth", {"f:metadata": {"f:finalizers": {}}, **IMAGE}, operation="Update")
    body = of("Pod", made, entry("kubectl-set", IMAGE), **POD)
    body["metadata"]["finalizers"] = ["berth.dev/end-seen"]
    assert told(body) == [("spec.containers[name=workspace].image", "kubectl-set", "other:2")]


def test_the_status_belongs_to_its_controller() -> None:
    status = entry("kube-controller-manager", {"f:status": {"f:loadBalancer": {}}}, subresource="status")
    assert told(of("Service", entry("berth", SERVICE), status)) == []


def test_a_field_set_by_another_subresource_counts() -> None:
    resized = entry("kubectl", {"f:spec": {"f:type": {}}}, subresource="resize")
    assert told(of("Service", entry("berth", SERVICE), resized, spec={"type": "NodePort"})) == [
        ("spec.type", "kubectl", "NodePort")
    ]


def test_a_removed_field_is_a_difference_without_an_owner() -> None:
    kept: dict[str, Any] = {"f:data": {"f:jupyter-token": {}, "f:ssh_host_ed25519_key": {}}}
    assert told(of("Secret", entry("berth", kept))) == [("data.authorized_keys", "", None)]


def test_only_the_key_of_a_changed_secret_is_shown() -> None:
    owned: dict[str, Any] = {"f:data": {"f:ssh_host_ed25519_key": {}, "f:authorized_keys": {}}}
    edit = entry("kubectl-edit", {"f:data": {"f:jupyter-token": {}}})
    body = of("Secret", entry("berth", owned), edit, data={"jupyter-token": "aGlkZGVu"})
    assert told(body) == [("data.jupyter-token", "kubectl-edit", None)]


@pytest.mark.parametrize(
    "owned",
    [
        {"f:metadata": {"f:annotations": {"f:metallb.io/pool": {}}}},
        {"f:metadata": {"f:labels": {"f:team": {}}, "f:finalizers": {".": {}}}},
        {"f:spec": {"f:loadBalancerIP": {}}},
        {"f:status": {"f:loadBalancer": {}}},
    ],
)
def test_fields_that_others_add_for_themselves_are_no_difference(owned: dict[str, Any]) -> None:
    assert told(of("Service", entry("berth", SERVICE), entry("controller", owned))) == []


def test_our_labels_and_a_namespaces_pod_security_are_watched() -> None:
    enforce = "pod-security.kubernetes.io/enforce"
    labels: dict[str, Any] = {"f:metadata": {"f:labels": {"f:berth.dev/tenant": {}, f"f:{enforce}": {}}}}
    body = of("Namespace", entry("kubectl-label", labels))
    body["metadata"]["labels"] = {"berth.dev/tenant": "x", enforce: "privileged"}
    assert [(path, value) for path, _by, value in told(body)] == [
        ("metadata.labels.berth.dev/tenant", "x"),
        (f"metadata.labels.{enforce}", "privileged"),
    ]


def test_a_pod_of_a_set_differs_by_later_changes_of_others_and_without_its_finalizer() -> None:
    made = entry("k3s", {"f:metadata": {"f:ownerReferences": {}}, "f:spec": {"f:containers": {}}})
    later = entry("kubectl-edit", {"f:spec": {"f:containers": {CONTAINER: {"f:image": {}}}}})
    pod = of("Pod", made, spec={"nodeName": "n", "containers": [{"name": "workspace", "image": "i"}]})
    pod["metadata"]["name"] = "ws-1-0"
    assert [one.path for one in differences(pod)] == ['metadata.finalizers["berth.dev/end-seen"]']
    pod["metadata"]["finalizers"] = ["berth.dev/end-seen"]
    assert told(pod) == []
    pod["metadata"]["managedFields"].append(later)
    assert told(pod) == [("spec.containers[name=workspace].image", "kubectl-edit", "i")]


def test_whoever_names_an_owner_hides_no_change_of_a_bare_pod() -> None:
    change = {"f:metadata": {"f:ownerReferences": {}}, **IMAGE}
    pod = of("Pod", entry("berth", IMAGE, operation="Update"), entry("kubectl-edit", change), **POD)
    pod["metadata"]["finalizers"] = ["berth.dev/end-seen"]
    assert told(pod) == [("spec.containers[name=workspace].image", "kubectl-edit", "other:2")]


def test_another_value_is_another_difference() -> None:
    def digest(value: str) -> str:
        edited = entry("kubectl", {"f:spec": {"f:type": {}}})
        (one,) = differences(of("Service", entry("berth", SERVICE), edited, spec={"type": value}))
        return one.digest

    assert digest("NodePort") == digest("NodePort") != digest("ClusterIP")


def test_without_managed_fields_there_are_no_differences() -> None:
    assert differences({"kind": "Service", "metadata": {"name": "x"}}) == []


def test_a_field_is_found_by_the_key_of_its_entry() -> None:
    fields = ("f:spec", "f:containers", CONTAINER, "f:image")
    assert pointer_to(POD, fields) == ["spec", "containers", 1, "image"]
    assert value_at(POD, fields) == "other:2"
    assert pointer_to(POD, ("f:spec", "f:volumes")) is None
