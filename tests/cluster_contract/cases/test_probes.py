"""Probes: what a failure of each kind changes, and the words of its event."""

from typing import Any

import pytest

from devcluster.testing.kube import Obj
from tests.cluster_contract.cases.shells import Ground, conditions, container

SERVE = "cd /tmp && exec python3 -m http.server --bind $POD_IP 8080"
OFTEN = {"periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 10}


def probing(ground: Ground, script: str, **probes: Any) -> str:
    return ground.pod(script, main={f"{kind}Probe": OFTEN | probe for kind, probe in probes.items()})


def is_ready(pod: Obj) -> bool:
    return conditions(pod).get("Ready", {}).get("status") == "True"


def test_what_answers_well_is_ready(ground: Ground) -> None:
    path = probing(ground, SERVE, readiness={"httpGet": {"port": 8080}})
    ground.kube.until(path, is_ready, 60)


def test_until_its_probe_succeeds_a_container_is_not_ready(ground: Ground) -> None:
    path = probing(ground, "sleep 600", readiness={"tcpSocket": {"port": 81}})
    [told] = ground.events("Unhealthy")
    found = ground.until(path, "running")
    address = found["status"]["podIP"]
    assert told == f"Readiness probe failed: dial tcp {address}:81: connect: connection refused"
    ready = conditions(found)["Ready"]
    assert (ready["reason"], ready["message"]) == (
        "ContainersNotReady",
        "containers with unready status: [main]",
    )
    assert container(found)["started"] is True


@pytest.mark.slow
def test_an_answer_of_the_wrong_kind_is_named_by_its_code(ground: Ground) -> None:
    slow = {"initialDelaySeconds": 2}
    probing(ground, SERVE, readiness={"httpGet": {"port": 8080, "path": "/nope"}} | slow)
    assert "Readiness probe failed: HTTP probe failed with statuscode: 404" in ground.events("Unhealthy")


def test_nobody_there_is_told_with_the_address_that_was_asked(ground: Ground) -> None:
    path = probing(ground, "sleep 600", readiness={"httpGet": {"port": 8081, "path": "/x"}})
    [told] = ground.events("Unhealthy")
    at = f"{ground.until(path, 'running')['status']['podIP']}:8081"
    assert told == f'Readiness probe failed: Get "http://{at}/x": dial tcp {at}: connect: connection refused'


def test_a_container_that_is_not_alive_is_started_again(ground: Ground) -> None:
    check = {"exec": {"command": ["sh", "-c", "echo not well; exit 2"]}}
    path = ground.pod("sleep 600", main={"livenessProbe": OFTEN | check}, restartPolicy="Always")
    found = ground.kube.until(path, lambda o: "restartCount': 1" in str(o["status"]), 60)
    assert container(found)["lastState"]["terminated"]["exitCode"] in (137, 143)
    assert ground.events("Unhealthy") == ["Liveness probe failed: not well\n"]
    assert ground.events("Killing") == ["Container main failed liveness probe, will be restarted"]


@pytest.mark.slow
def test_nothing_else_is_asked_before_the_start_is_over(ground: Ground) -> None:
    started = {"exec": {"command": ["test", "-e", "/tmp/up"]}, "failureThreshold": 30}
    alive = {"exec": {"command": ["test", "-e", "/tmp/up"]}}
    script = "sleep 5; touch /tmp/up; sleep 600"
    path = probing(ground, script, startup=started, liveness=alive, readiness=alive)
    found = ground.kube.until(path, lambda o: "running" in str(o["status"].get("containerStatuses")), 60)
    assert (container(found)["started"], container(found)["ready"]) == (False, False)
    found = ground.kube.until(path, is_ready, 60)
    assert (container(found)["started"], container(found)["restartCount"]) == (True, 0)
    assert {told.partition(" ")[0] for told in ground.events("Unhealthy")} == {"Startup"}


def test_what_does_not_start_and_must_not_start_again_is_over(ground: Ground) -> None:
    path = probing(ground, "sleep 600", startup={"tcpSocket": {"port": 81}, "failureThreshold": 2})
    ground.ended(path, "Failed")
    assert ground.events("Killing") == ["Stopping container main"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["sleep", "30"], 'failed: command timed out: "sleep 30" timed out after 1s'),
        (
            ["nonesuch"],
            "errored and resulted in unknown state: rpc error: code = Unknown desc = failed to exec",
        ),
    ],
)
def test_a_command_that_hangs_or_is_not_there_is_told_so(
    ground: Ground, command: list[str], words: str
) -> None:
    readiness = {"exec": {"command": command}, "timeoutSeconds": 1 if "sleep" in command else 10}
    probing(ground, "sleep 600", readiness=readiness)
    assert ground.events("Unhealthy")[0].startswith(f"Readiness probe {words}")
