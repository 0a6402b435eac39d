"""Pods on their node: the order in which containers run, how pods end, and what the kubelet reports."""

import json

import pytest

from devcluster.testing.kube import Obj
from tests.cluster_contract.cases.shells import Ground, conditions, container

UNPARSED = (
    'Failed to apply default image tag "docker.io/local/ABsent:1": couldn\'t parse image name'
    ' "docker.io/local/ABsent:1": invalid reference format: repository name (local/ABsent) must be lowercase'
)


def test_init_containers_run_one_after_the_other_before_the_rest(ground: Ground) -> None:
    volume: Obj = {"volumes": [{"name": "v", "emptyDir": {}}]}
    at = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    inits = [ground.container(f"echo {n} >>/v/order", name=n, **at) for n in ("one", "two")]
    path = ground.pod("cat /v/order", main=at, initContainers=inits, **volume)
    found = ground.ended(path)
    assert ground.log(path) == "one\ntwo\n"
    assert [c["ready"] for c in found["status"]["initContainerStatuses"]] == [True, True]
    assert conditions(found)["Initialized"]["reason"] == "PodCompleted"


def test_until_its_init_containers_have_run_a_pod_is_initializing(ground: Ground) -> None:
    slow = [ground.container("sleep 60", name="slow")]
    path = ground.pod("true", initContainers=slow)
    found = ground.kube.until(path, lambda o: "running" in str(o["status"].get("initContainerStatuses")), 60)
    assert found["status"]["phase"] == "Pending"
    assert container(found)["state"] == {"waiting": {"reason": "PodInitializing"}}
    told = conditions(found)["Initialized"]
    assert (told["reason"], told["message"]) == (
        "ContainersNotInitialized",
        "containers with incomplete status: [slow]",
    )


def test_an_init_container_that_fails_for_good_fails_the_pod(ground: Ground) -> None:
    path = ground.pod("true", initContainers=[ground.container("exit 3", name="one")])
    found = ground.ended(path, "Failed")
    assert container(found, "one")["state"]["terminated"]["exitCode"] == 3
    assert container(found)["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert conditions(found)["Ready"]["reason"] == "PodFailed"


def test_the_ends_of_its_containers_are_told_before_that_of_the_pod(ground: Ground) -> None:
    seen = []
    ground.pod("sleep 1; exit 3")
    with ground.kube.open("GET", f"{ground.space}/pods", watch="1", timeoutSeconds="60") as told:
        for line in told:
            pod = json.loads(line)["object"]
            if "terminated" in str(pod["status"].get("containerStatuses")):
                seen.append((pod["status"]["phase"], conditions(pod)["Ready"]["reason"]))
            if pod["status"]["phase"] == "Failed":
                break
    assert list(dict.fromkeys(seen)) == [("Running", "PodFailed"), ("Failed", "PodFailed")]


@pytest.mark.parametrize("ends_first", [True, False])
def test_a_last_status_tells_whether_the_pod_had_been_deleted(ground: Ground, *, ends_first: bool) -> None:
    held = "example.org/hold"
    script = "exit 0" if ends_first else "trap 'exit 0' TERM; sleep 600 & wait"
    path = ground.pod(script, terminationGracePeriodSeconds=20, finalizers=[held])
    if ends_first:
        ground.ended(path)
    else:
        ground.until(path, "running")
    ground.kube.call("DELETE", path)
    left = ground.kube.until(path, lambda o: o["metadata"].get("deletionGracePeriodSeconds") == 0, 60)
    assert left["status"]["phase"] == "Succeeded"
    assert left["metadata"]["generation"] == 2
    assert left["status"]["observedGeneration"] == (1 if ends_first else 2)
    ended = container(left)["state"]["terminated"]["finishedAt"]
    assert (
        left["metadata"]["deletionTimestamp"] >= ended
    )  # as if it had been deleted after its end, either way
    ground.kube.call("PATCH", path, {"metadata": {"finalizers": None}}, "merge")


@pytest.mark.slow
def test_a_sidecar_runs_beside_the_pods_work_and_ends_after_it(ground: Ground) -> None:
    script = "trap 'sleep 1; exit 0' TERM; sleep 600 & wait"
    sidecar = ground.container(script, name="side", restartPolicy="Always")
    path = ground.pod("sleep 1", initContainers=[sidecar], terminationGracePeriodSeconds=10)
    found = ground.ended(path)
    ends = [container(found, n)["state"]["terminated"]["finishedAt"] for n in ("main", "side")]
    assert ends == sorted(ends)
    assert ground.events("Killing") == ["Stopping container side"]


@pytest.mark.slow
def test_the_next_init_container_waits_for_the_sidecars_startup_probe(ground: Ground) -> None:
    probe = {"exec": {"command": ["test", "-e", "/tmp/up"]}, "periodSeconds": 1}
    sidecar = ground.container("sleep 2; touch /tmp/up; sleep 600", name="side", restartPolicy="Always")
    after = ground.container("true", name="after")
    path = ground.pod("true", initContainers=[sidecar | {"startupProbe": probe}, after])
    found = ground.ended(path)
    began = container(found, "side")["state"]["terminated"]["startedAt"]
    assert container(found, "after")["state"]["terminated"]["startedAt"] > began


def test_what_a_container_writes_as_its_message_is_kept(ground: Ground) -> None:
    path = ground.pod("echo because >/dev/termination-log; echo some; exit 4")
    ended = container(ground.ended(path, "Failed"))["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (4, "Error", "because\n")


@pytest.mark.parametrize(("code", "message"), [(4, "some\nlast words\n"), (0, None)])
def test_the_end_of_the_log_is_the_message_of_what_failed_without_one(
    ground: Ground, code: int, message: str | None
) -> None:
    asked = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    path = ground.pod(f"echo some; echo last words; exit {code}", main=asked)
    ended = container(ground.ended(path, "Failed" if code else "Succeeded"))["state"]["terminated"]
    assert ended.get("message") == message


def test_what_keeps_failing_waits_longer_each_time_and_says_so(ground: Ground) -> None:
    path = ground.pod("exit 5", restartPolicy="Always")
    found = ground.until(path, "CrashLoopBackOff")
    meta, status = found["metadata"], container(found)
    where = f"p_{meta['namespace']}({meta['uid']})"
    pause = {1: "10s", 2: "20s"}[status["restartCount"]]  # a busy kubelet may skip the first one
    told = f"back-off {pause} restarting failed container=main pod={where}"
    assert status["state"]["waiting"]["message"] == told
    assert status["started"] is False
    assert status["lastState"]["terminated"]["exitCode"] == 5
    assert found["status"]["phase"] == "Running"
    assert ground.events("BackOff") == [f"Back-off restarting failed container main in pod {where}"]


def test_on_failure_a_good_end_is_the_end(ground: Ground) -> None:
    again: Obj = {"volumes": [{"name": "v", "emptyDir": {}}], "restartPolicy": "OnFailure"}
    at = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    found = ground.ended(ground.pod("test -e /v/f || { touch /v/f; exit 1; }", main=at, **again))
    assert container(found)["restartCount"] == 1


def test_a_command_that_is_not_there_does_not_start(ground: Ground) -> None:
    path = ground.pod("", main={"command": ["nonesuch"]})
    ended = container(ground.ended(path, "Failed"))["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    why = 'unable to start container process: exec: "nonesuch": executable file not found in $PATH'
    assert ended["message"].endswith(why)
    assert ground.events("Failed") == [f"Error: {ended['message']}"]


def test_more_memory_than_allowed_ends_in_oom_killed(ground: Ground) -> None:
    limits = {"resources": {"limits": {"memory": "64Mi"}}}
    script = "exec python3 -c 'x = [bytearray(2**20) for n in range(400)]; import time; time.sleep(60)'"
    ended = container(ground.ended(ground.pod(script, main=limits), "Failed"))["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


@pytest.mark.slow
def test_a_pod_has_no_longer_than_its_deadline(ground: Ground) -> None:
    path = ground.pod("trap 'exit 0' TERM; sleep 600 & wait", activeDeadlineSeconds=2)
    found = ground.ended(path, "Failed")
    message = "Pod was active on the node longer than the specified deadline"
    assert (found["status"]["reason"], found["status"]["message"]) == ("DeadlineExceeded", message)
    assert ground.events("DeadlineExceeded") == [message]


def test_a_hook_that_fails_after_the_start_ends_the_container(ground: Ground) -> None:
    hook = {"postStart": {"exec": {"command": ["false"]}}}
    ground.pod("sleep 600", main={"lifecycle": hook})
    assert ground.events("FailedPostStartHook") == ["PostStartHook failed"]
    assert "FailedPostStartHook" in ground.events("Killing")


def test_a_hook_before_the_end_runs_while_the_container_does(ground: Ground) -> None:
    asking = "touch /tmp/asked; until test -e /tmp/seen; do sleep 0.1; done"
    hook = {"preStop": {"exec": {"command": ["sh", "-c", asking]}}}
    script = "until test -e /tmp/asked; do sleep 0.1; done; echo hook seen; touch /tmp/seen; exec sleep 600"
    path = ground.pod(script, main={"lifecycle": hook}, terminationGracePeriodSeconds=30)
    ground.kube.call("PATCH", path, {"metadata": {"finalizers": ["example.org/hold"]}}, "merge")
    ground.until(path, "running")
    ground.kube.call("DELETE", path)
    ground.ended(path, "Failed")
    assert ground.log(path) == "hook seen\n"
    ground.kube.call("PATCH", path, {"metadata": {"finalizers": None}}, "merge")


@pytest.mark.parametrize(
    ("image", "reason", "message"),
    [
        (
            "docker.io/local/ABsent:1",
            "InvalidImageName",
            UNPARSED,
        ),
        (
            "docker.io/local/absent:1",
            "ErrImageNeverPull",
            'Container image "docker.io/local/absent:1" is not present with pull policy of Never',
        ),
    ],
)
def test_an_image_that_cannot_be_had_is_named(ground: Ground, image: str, reason: str, message: str) -> None:
    path = ground.pod("true", main={"image": image, "imagePullPolicy": "Never"})
    found = ground.until(path, reason)
    assert container(found)["state"]["waiting"] == {"reason": reason, "message": message}
    assert f"Error: {reason}" in ground.events("Failed")


def test_an_image_that_cannot_be_pulled_is_tried_again_with_pauses(ground: Ground) -> None:
    path = ground.pod("true", main={"image": "docker.io/local/absent:1"})
    found = ground.until(path, "ImagePullBackOff")
    waiting = container(found)["state"]["waiting"]["message"]
    prefix = 'Back-off pulling image "docker.io/local/absent:1": ErrImagePull: '
    assert waiting.startswith(prefix)
    assert ground.events("Pulling") == ['Pulling image "docker.io/local/absent:1"']
    assert ground.events("BackOff") == ['Back-off pulling image "docker.io/local/absent:1"']
    told = {f'Failed to pull image "docker.io/local/absent:1": {waiting.removeprefix(prefix)}'}
    assert set(ground.events("Failed")) == told | {"Error: ErrImagePull", "Error: ImagePullBackOff"}


def test_an_image_that_the_node_has_is_not_pulled(ground: Ground) -> None:
    ground.ended(ground.pod("true", name="first"))
    ground.ended(ground.pod("true", name="second"))
    words = "already present on machine and can be accessed by the pod"
    assert ground.events("Pulled", "second") == [f'Container image "{ground.image}" {words}']
    assert ground.events("Created", "second") == ["Container created"]
    assert ground.events("Started", "second") == ["Container started"]


def test_who_must_not_be_root_and_asks_to_be_is_refused(ground: Ground) -> None:
    path = ground.pod("true", main={"securityContext": {"runAsNonRoot": True, "runAsUser": 0}})
    found = ground.until(path, "CreateContainerConfigError")
    meta = found["metadata"]
    where = f'(pod: "p_{meta["namespace"]}({meta["uid"]})", container: main)'
    message = f"container's runAsUser breaks non-root policy {where}"
    assert container(found)["state"]["waiting"]["message"] == message
    assert ground.events("Failed") == [f"Error: {message}"]


def test_a_missing_secret_is_told_and_waited_for(ground: Ground) -> None:
    volume: Obj = {"volumes": [{"name": "v", "secret": {"secretName": "late"}}]}
    at = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    path = ground.pod("cat /v/k", main=at, **volume)
    told = ground.events("FailedMount")
    assert told[0] == 'MountVolume.SetUp failed for volume "v" : secret "late" not found'
    found = ground.until(path, "ContainerCreating")
    assert container(found)["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert conditions(found)["PodReadyToStartContainers"]["status"] == "False"
    assert "podIP" not in found["status"]
    ground.kube.create(f"{ground.space}/secrets", {"metadata": {"name": "late"}, "stringData": {"k": "v"}})
    ground.ended(path)
    assert ground.log(path) == "v"


def test_a_pod_is_ready_only_once_its_gates_are_open(ground: Ground) -> None:
    path = ground.pod("sleep 600", readinessGates=[{"conditionType": "example.org/open"}])
    found = ground.kube.until(
        path, lambda o: conditions(o).get("ContainersReady", {}).get("status") == "True", 60
    )
    ready = conditions(found)["Ready"]
    assert (ready["status"], ready["reason"], ready["message"]) == (
        "False",
        "ReadinessGatesNotReady",
        'corresponding condition of pod readiness gate "example.org/open" does not exist.',
    )
    opened = {"status": {"conditions": [{"type": "example.org/open", "status": "True"}]}}
    code, answer = ground.kube.call("PATCH", f"{path}/status", opened, "strategic")
    assert code == 200, answer
    ground.kube.until(path, lambda o: conditions(o)["Ready"]["status"] == "True", 60)


def test_a_running_containers_status_has_what_clients_look_for(ground: Ground) -> None:
    limits = {"limits": {"memory": "64Mi", "cpu": "100m"}}
    path = ground.pod("sleep 600", main={"resources": limits})
    found = ground.kube.until(path, lambda o: conditions(o).get("Ready", {}).get("status") == "True", 60)
    status = container(found)
    kind, _, number = status["containerID"].partition("://")
    assert (bool(kind), len(number)) == (True, 64)
    assert status["imageID"].startswith("sha256:")
    assert status["resources"] == {"limits": limits["limits"], "requests": limits["limits"]}
    assert status["allocatedResources"] == limits["limits"]
    assert found["status"]["qosClass"] == "Guaranteed"
    assert [i["ip"] for i in found["status"]["hostIPs"]] == [found["status"]["hostIP"]]
    held = {kind: c["status"] for kind, c in conditions(found).items()}
    wanted = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    assert held == dict.fromkeys(wanted, "True")
