"""Fields of a kind: their names, their allowed values, and messages about unknown ones."""

from typing import Any

import pytest

from devcluster.testing.kube import Kube, Obj

PROBE = "spec.containers.livenessProbe"
UNKNOWN = [
    'unknown field "metadata.colour"',
    'unknown field "spec.containers[0].env[0].valu"',
    'unknown field "spec.speed"',
    'unknown field "more"',
]


def pod(image: str = "local/none:1", **container: Any) -> Obj:
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": image, **container}]},
    }


def misspelt() -> Obj:
    body = pod(env=[{"name": "A", "valu": "1"}])
    body["metadata"]["colour"] = "red"
    body["spec"]["speed"] = 1
    return body | {"more": True}


def deployment(**spec: Any) -> Obj:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    return {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec},
    }


def test_fields_that_a_kind_does_not_have_are_refused_where_the_client_is_strict(
    kube: Kube, space: str
) -> None:
    code, told = kube.call("POST", f"{space}/pods", misspelt(), dryRun="All", fieldValidation="Strict")
    assert (code, told["reason"]) == (400, "BadRequest")
    why = ", ".join(UNKNOWN)
    assert told["message"] == f'Pod in version "v1" cannot be handled as a Pod: strict decoding error: {why}'


@pytest.mark.parametrize("validation", ["Warn", ""])
def test_fields_that_a_kind_does_not_have_are_dropped_with_warnings(
    kube: Kube, space: str, validation: str
) -> None:
    asked: dict[str, Any] = {"fieldValidation": validation} if validation else {}
    with kube.open("POST", f"{space}/pods", misspelt(), dryRun="All", **asked) as answer:
        warnings = answer.headers.get_all("Warning")
        assert b'"valu"' not in answer.read()
    assert warnings == ['299 - "' + w.replace('"', '\\"') + '"' for w in UNKNOWN]


def test_who_ignores_unknown_fields_is_told_nothing(kube: Kube, space: str) -> None:
    with kube.open("POST", f"{space}/pods", misspelt(), dryRun="All", fieldValidation="Ignore") as answer:
        assert answer.headers.get_all("Warning") is None


def test_fields_are_told_apart_by_their_case(kube: Kube, space: str) -> None:
    code, told = kube.call("POST", f"{space}/pods", pod(Env=[]), dryRun="All", fieldValidation="Strict")
    assert code == 400
    assert told["message"].endswith('unknown field "spec.containers[0].Env"')


def test_a_field_that_comes_twice_is_told(kube: Kube, space: str) -> None:
    body = '{"metadata":{"name":"a","name":"b"},"data":{"k":"1","k":"2"}}'
    code, told = kube.call(
        "POST", f"{space}/configmaps", body.encode(), dryRun="All", fieldValidation="Strict"
    )
    assert code == 400
    assert told["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error:'
        ' duplicate field "metadata.name", duplicate field "data.k"'
    )


@pytest.mark.parametrize(
    ("container", "why"),
    [
        (
            {"env": [{"name": "A", "value": 1}]},
            "number into Go struct field EnvVar.spec.containers.env.value of type string",
        ),
        ({"command": "sh"}, "string into Go struct field Container.spec.containers.command of type []string"),
        ({"tty": "yes"}, "string into Go struct field Container.spec.containers.tty of type bool"),
        (
            {"imagePullPolicy": 3},
            "number into Go struct field Container.spec.containers.imagePullPolicy of type v1.PullPolicy",
        ),
        (
            {"ports": [{"containerPort": "80"}]},
            "string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            {"resources": {"limits": "much"}},
            "string into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
        ),
        (
            {"livenessProbe": {"httpGet": {"port": True}}},
            f"bool into Go struct field HTTPGetAction.{PROBE}.ProbeHandler.httpGet.port of type int32",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_its_place(
    kube: Kube, space: str, container: Obj, why: str
) -> None:
    code, told = kube.call("POST", f"{space}/pods", pod(**container), dryRun="All")
    assert (code, told["reason"]) == (400, "BadRequest")
    assert told["message"] == f'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal {why}'


@pytest.mark.parametrize(
    ("replicas", "what"), [("two", "string"), (1.5, "number 1.5"), (10**12, "number 1000000000000")]
)
def test_a_number_must_be_whole_and_fit(kube: Kube, space: str, replicas: Any, what: str) -> None:
    path = f"/apis/apps/v1/namespaces/{space.rpartition('/')[2]}/deployments"
    code, told = kube.call("POST", path, deployment(replicas=replicas), dryRun="All")
    assert code == 400
    assert told["message"] == (
        'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal'
        f" {what} into Go struct field DeploymentSpec.spec.replicas of type int32"
    )


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ("x", "json: cannot unmarshal string into Go struct field Pod.metadata of type v1.ObjectMeta"),
        (
            {"labels": {"a": 1}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            {"labels": ["a"]},
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            {"creationTimestamp": "x"},
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
        ),
    ],
)
def test_metadata_is_read_as_strictly(kube: Kube, space: str, metadata: Any, why: str) -> None:
    code, told = kube.call("POST", f"{space}/pods", pod() | {"metadata": metadata}, dryRun="All")
    assert (code, told["message"]) == (400, f'Pod in version "v1" cannot be handled as a Pod: {why}')


def test_a_quantity_is_kept_in_its_shortest_form(kube: Kube, space: str) -> None:
    amounts = {"cpu": "1000m", "memory": "1024Mi"}
    made = kube.create(f"{space}/pods", pod(resources={"limits": amounts}), dryRun="All")
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}
    code, told = kube.call("POST", f"{space}/pods", pod(resources={"limits": {"cpu": "lots"}}), dryRun="All")
    assert code == 400
    assert "quantities must match the regular expression" in told["message"]


def test_what_is_null_or_empty_is_left_out(kube: Kube, space: str) -> None:
    body = pod(env=[], workingDir="", tty=False, command=None)
    body["metadata"]["labels"] = {}
    made = kube.create(f"{space}/pods", body, dryRun="All")
    assert not {"env", "workingDir", "tty", "command"} & set(made["spec"]["containers"][0])
    assert "labels" not in made["metadata"]


def test_what_is_no_json_is_refused_with_what_came(kube: Kube, space: str) -> None:
    told = [kube.call("POST", f"{space}/configmaps", text.encode())[1]["message"] for text in ('{"a":', "")]
    start = "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind;"
    assert told[0] == f'{start} json parse error: unexpected end of JSON input ({{"a":)'
    assert told[1] == f"{start} json parse error: unexpected end of JSON input (<empty>)"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("v1", "Secret"), "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        (
            ("v1", "Foo"),
            'no kind "Foo" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
        ),
    ],
)
def test_a_body_of_another_kind_is_refused(kube: Kube, space: str, given: tuple[str, str], why: str) -> None:
    body = {"apiVersion": given[0], "kind": given[1], "metadata": {"name": "a"}}
    code, told = kube.call("POST", f"{space}/configmaps", body)
    assert (code, told["message"]) == (
        400,
        f'{given[1]} in version "v1" cannot be handled as a ConfigMap: {why}',
    )


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (
            {"fieldValidation": "x"},
            'fieldValidation: Unsupported value: "x": supported values: "", "Ignore", "Strict", "Warn"',
        ),
        ({"dryRun": "x"}, 'dryRun: Unsupported value: ["x"]: supported values: "All"'),
        ({"fieldManager": "m" * 129}, "fieldManager: Too long: may not be more than 128 bytes"),
    ],
)
def test_options_of_a_write_are_checked(kube: Kube, space: str, query: dict[str, Any], why: str) -> None:
    code, told = kube.call("POST", f"{space}/configmaps", {"metadata": {"name": "a"}}, **query)
    assert (code, told["message"]) == (422, f'CreateOptions.meta.k8s.io "" is invalid: {why}')


def test_a_body_may_come_in_protobuf(kube: Kube, space: str) -> None:
    config_map = part(1, part(1, b"made")) + part(2, part(1, b"key") + part(2, b"value"))
    about = part(1, b"v1") + part(2, b"ConfigMap")
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf", "Accept": "application/json"}
    body = b"k8s\0" + part(1, about) + part(2, config_map)
    code, made = kube.call("POST", f"{space}/configmaps", body, headers=headers)
    assert (code, made["data"]) == (201, {"key": "value"})


def part(number: int, content: bytes) -> bytes:
    """Return a field of a protobuf message, shorter than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content
