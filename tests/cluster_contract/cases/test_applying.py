"""Server-side apply: who owns what, and what happens when two want the same."""

from tests.kube import Kube


def test_a_field_left_out_of_the_next_apply_is_removed(kube: Kube, space: str) -> None:
    path = f"{space}/configmaps/one"
    kube.apply(path, config_map({"kept": "1", "left": "2"}))
    code, found = kube.apply(path, config_map({"kept": "1"}))
    assert code == 200
    assert found["data"] == {"kept": "1"}


def test_two_managers_that_want_the_same_field_conflict_in_words(kube: Kube, space: str) -> None:
    path = f"{space}/configmaps/one"
    kube.apply(path, config_map({"a": "1"}), manager="first", force=False)
    code, refused = kube.apply(path, config_map({"a": "2"}), manager="second", force=False)
    assert (code, refused["reason"]) == (409, "Conflict")
    assert refused["message"] == 'Apply failed with 1 conflict: conflict with "first": .data.a'


def config_map(data: dict[str, str]) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": data}
