"""Names and paths in a pod's spec that lead outside its own volumes are refused; the words of the refusals."""

from typing import Any

import pytest

from devcluster.testing.kube import Kube, Obj

NOT_UP, NOT_ABSOLUTE, NOT_RESERVED = (
    "must not contain '..'",
    "must be a relative path",
    "must not start with '..'",
)


def refusal(kube: Kube, space: str, what: str, body: Obj) -> str:
    code, answer = kube.call("POST", f"{space}/{what}", body)
    assert code == 422, answer
    return str(answer["message"])


def pod(image: str, source: Obj, **mount: Any) -> Obj:
    at = {"name": "v", "mountPath": "/v", **mount}
    container = {"name": "main", "image": image, "volumeMounts": [at]}
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [container], "volumes": [{"name": "v", **source}]},
    }


@pytest.mark.parametrize(("path", "why"), [("/etc", NOT_ABSOLUTE), ("a/../../b", NOT_UP)])
def test_a_sub_path_stays_in_its_volume(kube: Kube, space: str, image: str, path: str, why: str) -> None:
    told = refusal(kube, space, "pods", pod(image, {"emptyDir": {}}, subPath=path))
    assert f'spec.containers[0].volumeMounts.subPath: Invalid value: "{path}": {why}' in told


@pytest.mark.parametrize(("path", "why"), [("/x", NOT_ABSOLUTE), ("../x", NOT_UP), ("..x", NOT_RESERVED)])
@pytest.mark.parametrize(("kind", "name"), [("secret", "secretName"), ("configMap", "name")])
def test_an_item_is_written_into_its_volume(
    kube: Kube, space: str, image: str, kind: str, name: str, path: str, why: str
) -> None:
    body = pod(image, {kind: {name: "s", "items": [{"key": "k", "path": path}]}})
    at = f"spec.volumes[0].{kind}.items[0].path"
    assert f'{at}: Invalid value: "{path}": {why}' in refusal(kube, space, "pods", body)


def test_a_projected_item_is_written_into_its_volume(kube: Kube, space: str, image: str) -> None:
    items = [{"path": "../x", "fieldRef": {"fieldPath": "metadata.name"}}]
    body = pod(image, {"projected": {"sources": [{"downwardAPI": {"items": items}}]}})
    at = "spec.volumes[0].projected.sources[0].downwardAPI.path"
    assert f'{at}: Invalid value: "../x": {NOT_UP}' in refusal(kube, space, "pods", body)


def test_a_token_is_written_into_its_volume(kube: Kube, space: str, image: str) -> None:
    body = pod(image, {"projected": {"sources": [{"serviceAccountToken": {"path": "../x"}}]}})
    assert f'spec.volumes[0].projected.path: Invalid value: "../x": {NOT_UP}' in refusal(
        kube, space, "pods", body
    )


def test_a_volumes_name_is_no_path(kube: Kube, space: str, image: str) -> None:
    body = pod(image, {"emptyDir": {}, "name": "../x"}, name="../x")
    told = refusal(kube, space, "pods", body)
    assert 'spec.volumes[0].name: Invalid value: "../x"' in told
    assert 'spec.containers[0].volumeMounts[0].name: Not found: "../x"' in told


@pytest.mark.parametrize(
    ("key", "why"), [("..", "must not be '..'"), (".", "must not be '.'"), ("..x", NOT_RESERVED)]
)
@pytest.mark.parametrize("kind", ["secrets", "configmaps"])
def test_a_key_is_the_name_of_a_file(kube: Kube, space: str, kind: str, key: str, why: str) -> None:
    value = "dg==" if kind == "secrets" else "v"
    told = refusal(kube, space, kind, {"metadata": {"name": "s"}, "data": {key: value}})
    assert f'data[{key}]: Invalid value: "{key}": {why}' in told
