"""Changes to an object by others, from the API server's record. Bodies as Kubernetes 1.36 returns them."""

from __future__ import annotations

from typing import Any

import pytest

from monitoring.drift.ownership import differences, pointer_to, value_at
from tests.monitoring.drift.objects import SET, entry, of

CONTAINER = 'k:{"name":"workspace"}'
IMAGE: dict[str, Any] = {"f:spec": {"f:template": {"f:spec": {"f:containers": {CONTAINER: {"f:image": {}}}}}}}
TEMPLATE = {"spec": {"containers": [{"name": "side"}, {"name": "workspace", "image": "other:2"}]}}


def told(body: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    return [(one.path, one.by, one.value) for one in differences(body)]


def test_a_changed_image_is_shown_with_who_set_it() -> None:
    body = of("StatefulSet", entry("berth", SET), entry("kubectl-set", IMAGE), spec={"template": TEMPLATE})
    assert told(body) == [("spec.template.spec.containers[name=workspace].image", "kubectl-set", "other:2")]


def test_the_status_belongs_to_its_controller() -> None:
    status = entry("kube-controller-manager", {"f:status": {"f:replicas": {}}}, subresource="status")
    assert told(of("StatefulSet", entry("berth", SET), status)) == []


def test_replicas_set_by_the_scale_subresource_count() -> None:
    scaled = entry("kubectl", {"f:spec": {"f:replicas": {}}}, subresource="scale")
    assert told(of("StatefulSet", entry("berth", SET), scaled, spec={"replicas": 3})) == [
        ("spec.replicas", "kubectl", "3")
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
    service = entry("berth", {"f:spec": {"f:type": {}, "f:selector": {}, "f:ports": {}}})
    assert told(of("Service", service, entry("controller", owned))) == []


def test_our_labels_and_a_namespaces_pod_security_are_watched() -> None:
    enforce = "pod-security.kubernetes.io/enforce"
    labels: dict[str, Any] = {"f:metadata": {"f:labels": {"f:berth.dev/tenant": {}, f"f:{enforce}": {}}}}
    body = of("Namespace", entry("kubectl-label", labels))
    body["metadata"]["labels"] = {"berth.dev/tenant": "x", enforce: "privileged"}
    assert [(path, value) for path, _by, value in told(body)] == [
        ("metadata.labels.berth.dev/tenant", "x"),
        (f"metadata.labels.{enforce}", "privileged"),
    ]


def test_a_pod_differs_by_later_changes_of_others_and_without_its_finalizer() -> None:
    made = entry("k3s", {"f:metadata": {"f:ownerReferences": {}}, "f:spec": {"f:containers": {}}})
    later = entry("kubectl-edit", {"f:spec": {"f:containers": {CONTAINER: {"f:image": {}}}}})
    pod = of("Pod", made, spec={"nodeName": "n", "containers": [{"name": "workspace", "image": "i"}]})
    assert [one.path for one in differences(pod)] == ['metadata.finalizers["berth.dev/end-seen"]']
    pod["metadata"]["finalizers"] = ["berth.dev/end-seen"]
    assert told(pod) == []
    pod["metadata"]["managedFields"].append(later)
    assert told(pod) == [("spec.containers[name=workspace].image", "kubectl-edit", "i")]


def test_another_value_is_another_difference() -> None:
    def digest(replicas: int) -> str:
        scaled = entry("kubectl", {"f:spec": {"f:replicas": {}}})
        (one,) = differences(of("StatefulSet", entry("berth", SET), scaled, spec={"replicas": replicas}))
        return one.digest

    assert digest(2) == digest(2) != digest(3)


def test_without_managed_fields_there_are_no_differences() -> None:
    assert differences({"kind": "Service", "metadata": {"name": "x"}}) == []


def test_a_field_is_found_by_the_key_of_its_entry() -> None:
    fields = ("f:spec", "f:containers", CONTAINER, "f:image")
    assert pointer_to(TEMPLATE, fields) == ["spec", "containers", 1, "image"]
    assert value_at(TEMPLATE, fields) == "other:2"
    assert pointer_to(TEMPLATE, ("f:spec", "f:volumes")) is None
