"""Pods that want GPUs: valid requests for GPUs and nodes, and refusals of invalid ones, word for word."""

import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.testing.kube import Kube, Obj

GPU = "nvidia.com/gpu"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def pod(units: Obj | None = None, requests: Obj | None = None, **spec: Any) -> Obj:
    amounts = {"limits": units or {}, "requests": units or {} if requests is None else requests}
    container = {"name": "main", "image": "local/none:1", "resources": amounts}
    return {"metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}


def refusal(kube: Kube, space: str, body: Obj) -> tuple[int, str]:
    code, told = kube.call("POST", f"{space}/pods", body, dryRun="All")
    return code, re.sub(r'^(Pod "p" is invalid|pods "p" is forbidden): ', "", told.get("message", ""))


# --- amounts


def both(name: str, *told: str) -> str:
    """Return the message for a wrong resource name, which is reported for limits, then for requests."""
    where = (f"spec.containers[0].resources.{part}[{name}]" for part in ("limits", "requests"))
    return "[" + ", ".join(f"{at}: Invalid value: {one}" for at in where for one in told) + "]"


@pytest.mark.parametrize(
    ("name", "amount", "told"),
    [
        (GPU, "0.5", ('"500m": must be an integer',)),
        (GPU, "-1", ('"-1": must be greater than or equal to 0',)),
        ("gpu", "1", ('"gpu": must be a standard resource type or fully qualified',
                      '"gpu": must be a standard resource for containers')),
        ("requests.a.b/c", "1", ('"requests.a.b/c": doesn\'t follow extended resource name standard',)),
        ("a.b/mig-1g.10gb+me", "1", (f'"a.b/mig-1g.10gb+me": {NAME_PART}',
                                     '"a.b/mig-1g.10gb+me": doesn\'t follow extended resource name standard')),
    ],
)  # fmt: skip
def test_a_resource_that_cannot_be_is_refused(
    kube: Kube, space: str, name: str, amount: str, told: tuple[str, ...]
) -> None:
    assert refusal(kube, space, pod({name: amount})) == (422, both(name, *told))


def test_gpus_are_asked_for_and_limited_alike(kube: Kube, space: str) -> None:
    at = "spec.containers[0].resources"
    missing = "Required value: Limit must be set for non overcommitable resources"
    assert refusal(kube, space, pod(requests={GPU: "1"})) == (422, f"{at}.limits: {missing}")
    unequal = f'{at}.requests: Invalid value: "1": must be equal to {GPU} limit of 2'
    assert refusal(kube, space, pod({GPU: "2"}, requests={GPU: "1"})) == (422, unequal)
    assert refusal(kube, space, pod({"nvidia.com/mig-1g.10gb.me": "1"}))[0] == 201


# --- nodes


def requiring(**term: Any) -> Obj:
    terms = [{name: [found] for name, found in term.items()}] if term else []
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ({"key": "a", "operator": "Gt", "values": ["1", "2"]},
         "values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"),
        ({"key": "a", "operator": "In"},
         "values: Required value: must be specified when `operator` is 'In' or 'NotIn'"),
        ({"key": "a", "operator": "Exists", "values": ["x"]},
         "values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
        ({"key": "a", "operator": "Near"}, 'operator: Invalid value: "Near": not a valid selector operator'),
        ({"key": "a b", "operator": "Exists"}, f'key: Invalid value: "a b": {NAME_PART}'),
        ({"key": "a", "operator": "In", "values": ["x y"]}, f'values[0]: Invalid value: "x y": {VALUE}'),
    ],
)  # fmt: skip
def test_a_label_is_asked_for_in_one_of_few_ways(kube: Kube, space: str, expression: Obj, told: str) -> None:
    at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
    body = pod(affinity=requiring(matchExpressions=expression))
    assert refusal(kube, space, body) == (422, f"{at}.matchExpressions[0].{told}")


def test_a_bound_that_is_no_number_is_taken(kube: Kube, space: str) -> None:
    bound = {"key": "a", "operator": "Gt", "values": ["abc"]}
    assert refusal(kube, space, pod(affinity=requiring(matchExpressions=bound)))[0] == 201


def test_a_node_is_named_alone_and_somewhere_must_be_right(kube: Kube, space: str) -> None:
    at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    names = {"key": "metadata.name", "operator": "In", "values": ["a", "b"]}
    why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
    two = (422, f"{at}[0].matchFields[0].values: Required value: {why}")
    assert refusal(kube, space, pod(affinity=requiring(matchFields=names))) == two
    nowhere = (422, f"{at}: Required value: must have at least one node selector term")
    assert refusal(kube, space, pod(affinity=requiring())) == nowhere


@pytest.mark.parametrize("weight", [0, 101])
def test_a_wish_has_a_weight_within_bounds(kube: Kube, space: str, weight: int) -> None:
    wish = {"weight": weight, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    when = "preferredDuringSchedulingIgnoredDuringExecution"
    told = f"spec.affinity.nodeAffinity.{when}[0].weight: Invalid value: {weight}: must be in the range 1-100"
    assert refusal(kube, space, pod(affinity={"nodeAffinity": {when: [wish]}})) == (422, told)


@pytest.mark.parametrize(
    ("toleration", "told"),
    [
        ({"key": "a", "operator": "Near"},
         'operator: Unsupported value: "Near": supported values: "Equal", "Exists"'),
        ({"key": "a", "operator": "Gt", "value": "5"},
         'operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"'),
        ({"key": "a", "operator": "Exists", "value": "x"},
         "operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'"),
        ({"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3},
         "effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set"),
        ({"value": "x"}, ('operator: Invalid value: "": operator must be Exists when `key` is empty, which means'
                         ' "match all values and all keys"')),
        ({"key": "a", "operator": "Exists", "effect": "No"},
         'effect: Unsupported value: "No": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'),
        ({"key": "a b", "operator": "Exists"}, f'key: Invalid value: "a b": {NAME_PART}'),
        ({"key": "a", "value": "x y"}, f'operator: Invalid value: "x y": {VALUE}'),
    ],
)  # fmt: skip
def test_a_toleration_that_cannot_be_is_refused(kube: Kube, space: str, toleration: Obj, told: str) -> None:
    assert refusal(kube, space, pod(tolerations=[toleration])) == (422, f"spec.tolerations[0].{told}")


# --- runtime classes


@pytest.fixture
def runtime_class(kube: Kube) -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex[:8]}"
    scheduling = {"nodeSelector": {"gpu": "yes"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    body = {"metadata": {"name": name}, "handler": "nvidia", "scheduling": scheduling}
    kube.create(CLASSES, body | {"overhead": {"podFixed": {"cpu": "250m"}}})
    yield name
    kube.call("DELETE", f"{CLASSES}/{name}")


def test_a_pod_gets_what_its_runtime_class_says(kube: Kube, space: str, runtime_class: str) -> None:
    body = pod(runtimeClassName=runtime_class, nodeSelector={"own": "1"})
    spec = kube.create(f"{space}/pods", body, dryRun="All")["spec"]
    assert spec["nodeSelector"] == {"own": "1", "gpu": "yes"}
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["tolerations"][-1] == {"key": "gpu", "operator": "Exists"}


def test_a_pod_that_contradicts_its_runtime_class_is_refused(
    kube: Kube, space: str, runtime_class: str
) -> None:
    other = pod(runtimeClassName=runtime_class, nodeSelector={"gpu": "no"})
    told = "conflict: runtimeClass.scheduling.nodeSelector[gpu] = yes; pod.spec.nodeSelector[gpu] = no"
    assert refusal(kube, space, other) == (403, told)
    heavier = pod(runtimeClassName=runtime_class, overhead={"cpu": "1"})
    told = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    assert refusal(kube, space, heavier) == (403, told)


def test_a_runtime_class_that_is_not_there_is_named(kube: Kube, space: str) -> None:
    told = 'pod rejected: RuntimeClass "absent" not found'
    assert refusal(kube, space, pod(runtimeClassName="absent")) == (403, told)


@pytest.mark.parametrize(
    ("handler", "told"), [("", "Required value"), ("a.b", 'Invalid value: "a.b": must not contain dots')]
)
def test_a_runtime_class_names_a_handler(kube: Kube, handler: str, told: str) -> None:
    body = {"metadata": {"name": "x"}, "handler": handler}
    code, refused = kube.call("POST", CLASSES, body, dryRun="All")
    whole = f'RuntimeClass.node.k8s.io "x" is invalid: handler: {told}'
    assert (code, refused["message"]) == (422, whole)


# --- quotas


def quota(kube: Kube, space: str, **hard: str) -> Obj:
    kind = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    code, told = kube.apply(f"{space}/resourcequotas/q", kind | {"spec": {"hard": hard}})
    assert code in (200, 201), told
    path = f"{space}/resourcequotas/q"
    return dict(kube.until(path, lambda o: o.get("status", {}).get("hard") == hard)["status"])


def test_a_quota_counts_what_is_requested_of_plugins_and_leaves_limits_to_them(
    kube: Kube, space: str
) -> None:
    status = quota(kube, space, **{f"requests.{GPU}": "2", "limits.nvidia.com/gpumem": "100", GPU: "2"})
    assert status["used"] == {f"requests.{GPU}": "0"}
    units = {GPU: "1", "nvidia.com/gpumem": "200"}
    assert refusal(kube, space, pod(units))[0] == 201


def test_a_quota_below_what_is_used_stops_nothing_and_lets_nothing_in(kube: Kube, space: str) -> None:
    key = f"requests.{GPU}"
    quota(kube, space, **{key: "2"})
    kube.create(f"{space}/pods", pod({GPU: "2"}) | {"metadata": {"name": "held"}})
    assert quota(kube, space, **{key: "1"})["used"] == {key: "2"}
    told = f"exceeded quota: q, requested: {key}=1, used: {key}=2, limited: {key}=1"
    assert refusal(kube, space, pod({GPU: "1"})) == (403, told)
    assert refusal(kube, space, pod())[0] == 201
    kube.call("DELETE", f"{space}/pods/held", gracePeriodSeconds="0")
    kube.until(f"{space}/resourcequotas/q", lambda o: o["status"]["used"] == {key: "0"})
    assert refusal(kube, space, pod({GPU: "1"}))[0] == 201


def test_a_quota_is_for_known_or_qualified_resources(kube: Kube, space: str) -> None:
    body = {"metadata": {"name": "q"}, "spec": {"hard": {"gpu": "1"}}}
    code, refused = kube.call("POST", f"{space}/resourcequotas", body)
    faults = ("must be a standard resource type or fully qualified", "must be a standard resource for quota")
    told = ", ".join(f'spec.hard[gpu]: Invalid value: "gpu": {fault}' for fault in faults)
    assert (code, refused["message"]) == (422, f'ResourceQuota "q" is invalid: [{told}]')
