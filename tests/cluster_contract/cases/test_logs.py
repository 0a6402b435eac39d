"""Reading of logs: of which container, how much, and the messages where there are none."""

import re
from typing import Any

import pytest

from devcluster.testing.kube import Obj
from tests.cluster_contract.cases.shells import Ground


@pytest.fixture(scope="module")
def told(module_ground: Ground) -> str:
    """Path of a pod that has printed five lines."""
    path = module_ground.pod("for n in 1 2 3 4 5; do echo line $n; done; sleep 1; echo bad >&2", name="told")
    module_ground.ended(path)
    return path


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"tailLines": "2"}, "line 5\nbad\n"),
        ({"tailLines": "0"}, ""),
        ({"limitBytes": "10"}, "line 1\nlin"),
        ({"sinceTime": "2100-01-01T00:00:00Z"}, ""),
        ({"sinceSeconds": "3600", "tailLines": "1"}, "bad\n"),
        ({"container": "main", "limitBytes": "6"}, "line 1"),
    ],
)
def test_as_much_of_a_log_as_is_asked_for(
    module_ground: Ground, told: str, query: dict[str, str], text: str
) -> None:
    assert module_ground.log(told, **query) == text


def test_every_line_can_have_its_time(module_ground: Ground, told: str) -> None:
    first = module_ground.log(told, timestamps="true").splitlines()[0]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6,9}(Z|[+-]\d\d:\d\d) line 1", first)


def test_a_log_can_be_followed_to_its_end(ground: Ground) -> None:
    path = ground.pod("for n in 1 2 3; do echo line $n; sleep 0.5; done")
    ground.until(path, "startedAt")
    assert ground.log(path, follow="true") == "line 1\nline 2\nline 3\n"


def test_what_ends_without_an_end_of_line_gets_none(ground: Ground) -> None:
    path = ground.pod("printf 'one\\ntwo'")
    ground.ended(path)
    assert ground.log(path) == "one\ntwo"


def test_a_long_line_stays_one(ground: Ground) -> None:
    path = ground.pod("python3 -c 'print(\"x\" * 50000)'")
    ground.ended(path)
    assert ground.log(path) == "x" * 50000 + "\n"


def test_what_ended_before_can_still_be_read(ground: Ground) -> None:
    at = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    script = "if test -e /v/f; then echo second; sleep 600; fi; touch /v/f; echo first; exit 1"
    again: Obj = {"volumes": [{"name": "v", "emptyDir": {}}], "restartPolicy": "Always"}
    path = ground.pod(script, main=at, **again)
    ground.kube.until(path, lambda o: "restartCount': 1" in str(o["status"]), 60)
    ground.kube.until(f"{path}/log", lambda text: text == "second\n", 60)
    assert ground.log(path, previous="true") == "first\n"


def refusal(ground: Ground, path: str, **query: Any) -> str:
    code, answer = ground.kube.call("GET", f"{path}/log", **query)
    assert (code, answer["reason"]) == (400, "BadRequest")
    return str(answer["message"])


def test_what_is_not_there_to_read_is_named(ground: Ground) -> None:
    both = [ground.container("sleep 600"), ground.container("sleep 600", name="other")]
    path = ground.pod("", containers=both, initContainers=[ground.container("echo init", name="init")])
    ground.kube.until(path, lambda o: o["status"].get("phase") == "Running", 60)
    names = "choose one of: [init main other]"
    assert refusal(ground, path) == f"a container name must be specified for pod p, {names}"
    assert refusal(ground, path, container="zz") == "container zz is not valid for pod p"
    assert refusal(ground, path, container="main", previous="true") == (
        'previous terminated container "main" in pod "p" not found'
    )
    assert ground.log(path, container="init") == "init\n"


def test_what_has_not_begun_says_what_it_waits_for(ground: Ground) -> None:
    path = ground.pod("true", main={"image": "docker.io/local/absent:1", "imagePullPolicy": "Never"})
    ground.until(path, "ErrImageNeverPull")
    assert refusal(ground, path) == 'container "main" in pod "p" is waiting to start: ErrImageNeverPull'
