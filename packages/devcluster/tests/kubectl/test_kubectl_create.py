"""kubectl creates objects from flags, which it sends in protobuf, unlike files."""

import json

import pytest

from helpers.kubectl import Kubectl, needs_kubectl

pytestmark = needs_kubectl


def field(kubectl: Kubectl, what: str, path: str) -> object:
    text = kubectl("get", what, "-o", f"jsonpath={{{path}}}")
    try:
        return json.loads(text)
    except ValueError:
        return text


@pytest.mark.parametrize(
    ("flags", "what", "path", "holds"),
    [
        ("configmap c --from-literal=a=1", "configmap/c", ".data", {"a": "1"}),
        ("secret generic s --from-literal=a=1", "secret/s", ".data", {"a": "MQ=="}),
        ("serviceaccount robot", "serviceaccount/robot", ".metadata.name", "robot"),
        ("quota q --hard=pods=3,requests.cpu=2", "quota/q", ".spec.hard", {"pods": "3", "requests.cpu": "2"}),
        ("role r --verb=get,list --resource=pods", "role/r", ".rules[0].verbs", ["get", "list"]),
        ("rolebinding b --role=r --user=jo", "rolebinding/b", ".subjects[0].name", "jo"),
        ("service clusterip web --tcp=80:8080", "service/web", ".spec.ports[0].targetPort", 8080),
        ("deployment web --image=local/none:1 --replicas=0", "deployment/web", ".spec.replicas", 0),
        ("job j --image=local/none:1", "job/j", ".spec.backoffLimit", 6),
        ("poddisruptionbudget p --selector=a=b --min-available=1", "pdb/p", ".spec.minAvailable", 1),
    ],
)
def test_create_by_flags(kubectl: Kubectl, flags: str, what: str, path: str, holds: object) -> None:
    assert kubectl("create", *flags.split()).endswith(" created\n")
    assert field(kubectl, what, path) == holds


def test_create_a_namespace(kubectl: Kubectl) -> None:
    name = f"{kubectl.namespace}-more"
    assert kubectl("create", "namespace", name) == f"namespace/{name} created\n"
    assert field(kubectl, f"namespace/{name}", ".status.phase") == "Active"


def test_expose_and_autocreated_selectors(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=local/none:1", "--port=8080")
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    assert kubectl("expose", "deployment", "web") == "service/web exposed\n"
    assert field(kubectl, "service/web", ".spec.selector") == {"app": "web"}
    assert field(kubectl, "service/web", ".spec.ports[0].targetPort") == 8080
