"""Tables, as kubectl asks for them: the columns of each kind, and the cells of a row."""

from typing import Any

import pytest

from devcluster.testing.kube import Kube, Obj

AS_TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
COLUMNS = {
    "/api/v1/pods": "Name, Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*",
    "/api/v1/nodes": "Name, Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, "
    "Kernel-Version*, Container-Runtime*",
    "/api/v1/services": "Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*",
    "/api/v1/persistentvolumeclaims": "Name, Status, Volume, Capacity, Access Modes, StorageClass, "
    "VolumeAttributesClass, Age, VolumeMode*",
    "/api/v1/persistentvolumes": "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, "
    "VolumeAttributesClass, Reason, Age, VolumeMode*",
    "/api/v1/events": "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count*, "
    "Name*",
    "/api/v1/resourcequotas": "Name, Request, Limit, Age",
    "/api/v1/limitranges": "Name, Created At",
    "/api/v1/configmaps": "Name, Data, Age",
    "/api/v1/secrets": "Name, Type, Data, Age",
    "/api/v1/serviceaccounts": "Name, Age",
    "/api/v1/namespaces": "Name, Status, Age",
    "/apis/apps/v1/statefulsets": "Name, Ready, Age, Containers*, Images*",
    "/apis/apps/v1/deployments": "Name, Ready, Up-to-date, Available, Age, Containers*, Images*, Selector*",
    "/apis/apps/v1/replicasets": "Name, Desired, Current, Ready, Age, Containers*, Images*, Selector*",
    "/apis/apps/v1/daemonsets": "Name, Desired, Current, Ready, Up-to-date, Available, Node Selector, Age, "
    "Containers*, Images*, Selector*",
    "/apis/apps/v1/controllerrevisions": "Name, Controller, Revision, Age",
    "/apis/batch/v1/jobs": "Name, Status, Completions, Duration, Age, Containers*, Images*, Selector*",
    "/apis/storage.k8s.io/v1/storageclasses": "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, "
    "AllowVolumeExpansion, Age",
    "/apis/storage.k8s.io/v1/volumeattachments": "Name, Attacher, PV, Node, Attached, Age",
    "/apis/networking.k8s.io/v1/networkpolicies": "Name, Pod-Selector, Age",
    "/apis/policy/v1/poddisruptionbudgets": "Name, Min Available, Max Unavailable, Allowed Disruptions, Age",
    "/apis/coordination.k8s.io/v1/leases": "Name, Holder, Age",
    "/apis/rbac.authorization.k8s.io/v1/roles": "Name, Created At",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings": "Name, Role, Age, Users*, Groups*, ServiceAccounts*",
}


def table(kube: Kube, path: str) -> Any:
    code, found = kube.call("GET", path, headers=AS_TABLE)
    assert (code, found["kind"]) == (200, "Table")
    return found


def cells(kube: Kube, path: str) -> list[Any]:
    """Return an object's cells without its age, the only cell that changes by itself."""
    found = table(kube, path)
    return [
        cell
        for column, cell in zip(found["columnDefinitions"], found["rows"][0]["cells"], strict=True)
        if column["name"] not in ("Age", "Created At")
    ]


@pytest.mark.parametrize("path", COLUMNS)
def test_a_kinds_columns_and_which_of_them_are_wide(kube: Kube, path: str) -> None:
    shown = [
        column["name"] + "*" * (column["priority"] > 0) for column in table(kube, path)["columnDefinitions"]
    ]
    assert ", ".join(shown) == COLUMNS[path]


def test_a_row_carries_its_objects_metadata(kube: Kube, space: str) -> None:
    kube.create(f"{space}/configmaps", {"metadata": {"name": "c", "labels": {"a": "b"}}})
    found = table(kube, f"{space}/configmaps/c")["rows"][0]["object"]
    assert (found["kind"], found["metadata"]["labels"]) == ("PartialObjectMetadata", {"a": "b"})
    assert "data" not in found


def pod(name: str, image: str, **spec: Any) -> Obj:
    gate = [{"name": "example.org/waits"}]
    body = {"containers": [{"name": "main", "image": image}], "schedulingGates": gate, **spec}
    return {"metadata": {"name": name}, "spec": body}


def test_a_pod_that_waits_behind_a_gate(kube: Kube, space: str, image: str) -> None:
    gates = [{"conditionType": "example.org/asked"}]
    kube.create(f"{space}/pods", pod("p", image, readinessGates=gates))
    kube.until(f"{space}/pods/p", lambda o: o["status"].get("conditions"))
    given = ["p", "0/1", "SchedulingGated", "0", "<none>", "<none>", "<none>", "0/1"]
    assert cells(kube, f"{space}/pods/p") == given


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"phase": "Running", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Pending", "waiting": "ImagePullBackOff"}, "ImagePullBackOff"),
        ({"phase": "Failed", "terminated": {"exitCode": 137, "reason": "OOMKilled"}}, "OOMKilled"),
        ({"phase": "Failed", "terminated": {"exitCode": 2}}, "ExitCode:2"),
        ({"phase": "Failed", "terminated": {"exitCode": 0, "signal": 9}}, "Signal:9"),
    ],
)
def test_a_pods_status_is_the_last_word_of_its_containers(
    kube: Kube, space: str, image: str, status: Obj, said: str
) -> None:
    kube.create(f"{space}/pods", pod("p", image))
    kube.until(f"{space}/pods/p", lambda o: o["status"].get("conditions"))
    state: Obj = {}
    if reason := status.get("waiting"):
        state = {"waiting": {"reason": reason}}
    elif end := status.get("terminated"):
        state = {"terminated": end}
    container = {
        "name": "main",
        "image": image,
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": state,
    }
    told = {"phase": status["phase"], "reason": status.get("reason"), "conditions": []}
    told["containerStatuses"] = [container] if state else None
    patch = {"status": told}
    code, made = kube.call("PATCH", f"{space}/pods/p/status", patch, "merge")
    assert code == 200, made
    assert cells(kube, f"{space}/pods/p")[2] == said


def test_rows_of_services_claims_quotas_and_policies(kube: Kube, space: str) -> None:
    ports = [{"port": 80, "name": "w"}, {"port": 53, "protocol": "UDP", "name": "d"}]
    spec: Obj = {"clusterIP": "None", "selector": {"b": "2", "a": "1"}, "ports": ports}
    kube.create(f"{space}/services", {"metadata": {"name": "s"}, "spec": spec})
    given = ["s", "ClusterIP", "None", "<none>", "80/TCP,53/UDP", "a=1,b=2"]
    assert cells(kube, f"{space}/services/s") == given

    claim: Obj = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": ""}
    claim |= {"resources": {"requests": {"storage": "1Gi"}}}
    kube.create(f"{space}/persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": claim})
    row = cells(kube, f"{space}/persistentvolumeclaims/c")
    assert row == ["c", "Pending", "", "", "", "", "<unset>", "Filesystem"]

    hard = {"pods": "3", "limits.memory": "1Gi"}
    kube.create(f"{space}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    kube.until(f"{space}/resourcequotas/q", lambda o: o["status"].get("used"))
    assert cells(kube, f"{space}/resourcequotas/q") == ["q", "pods: 0/3", "limits.memory: 0/1Gi"]

    policies = space.replace("/api/v1", "/apis/networking.k8s.io/v1") + "/networkpolicies"
    terms = [{"key": "b", "operator": "In", "values": ["z", "y"]}, {"key": "c", "operator": "DoesNotExist"}]
    selector = {"matchLabels": {"a": "1"}, "matchExpressions": terms}
    kube.create(policies, {"metadata": {"name": "n"}, "spec": {"podSelector": selector}})
    assert cells(kube, f"{policies}/n") == ["n", "a=1,b in (y,z),!c"]
