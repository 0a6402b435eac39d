"""Pod behaviour that only devcluster offers: short pauses, simulated ends, refusals of the machine, full logs."""

import asyncio
import shutil
from pathlib import Path

import pytest

from devcluster.kubelet.containers import logs
from devcluster.kubelet.containers.backoff import BackOff, in_words
from devcluster.nodes import Pauses
from devcluster.testing.cluster import DevCluster, is_ready, pod, running
from devcluster.testing.kube import Obj
from helpers.shells import process_pods, shell

NODES = """
nodes: [{name: here, cpu: 64, memory: 512Gi}]
played: {start_seconds: 0.05, ready_seconds: 0.05, stop_seconds: 0.1}
back_off: {first_seconds: 0.2, most_seconds: 0.4}
"""


@pytest.fixture
def pods(cluster: DevCluster) -> str:
    return f"{cluster.fresh()}/pods"


def ending(name: str, word: str, **spec: object) -> Obj:
    body = pod(name, **spec)
    body["metadata"]["annotations"] = {"devcluster.local/ends": word}
    return body


@pytest.mark.parametrize(("word", "phase"), [("0.2:0", "Succeeded"), ("0.2:3", "Failed")])
def test_a_played_pod_ends_when_and_as_it_is_told(
    cluster: DevCluster, pods: str, word: str, phase: str
) -> None:
    cluster.create(pods, ending("p", word, restartPolicy="Never"))
    found = cluster.until(f"{pods}/p", lambda o: o["status"].get("phase") in ("Succeeded", "Failed"))
    assert found["status"]["phase"] == phase
    terminated = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert terminated["exitCode"] == int(word.partition(":")[2])


def test_played_init_containers_have_done_their_work_and_sidecars_go_on(
    cluster: DevCluster, pods: str
) -> None:
    image = {"image": "local/none:1"}
    sidecar = {"name": "side", "restartPolicy": "Always", **image}
    cluster.create(pods, pod("p", initContainers=[{"name": "one", **image}, sidecar]))
    found = cluster.until(f"{pods}/p", is_ready)
    one, side = found["status"]["initContainerStatuses"]
    assert one["state"]["terminated"]["reason"] == "Completed"
    assert "running" in side["state"]


def test_an_ending_that_makes_no_sense_is_told(cluster: DevCluster, pods: str) -> None:
    cluster.create(pods, ending("p", "soon"))
    found = cluster.until(f"{pods}/p", lambda o: "CreateContainerConfigError" in str(o["status"]))
    assert "is SECONDS:CODE, not soon" in str(found["status"]["containerStatuses"])


def test_pauses_double_up_to_the_longest_and_begin_anew_after_a_steady_run() -> None:
    back_off = BackOff(Pauses(first_seconds=10, most_seconds=35, reset_seconds=600), at_once=True)
    assert [back_off.next() for _ in range(5)] == [0, 10, 20, 35, 35]
    assert [back_off.next(steady_seconds=600), back_off.next()] == [0, 10]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "400ms"), (10, "10s"), (80, "1m20s"), (300, "5m0s"), (160, "2m40s")]
)
def test_pauses_are_written_as_go_writes_them(seconds: float, text: str) -> None:
    assert in_words(seconds) == text


def test_a_full_log_begins_anew_and_its_parts_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MOST_BYTES", 1000)
    writer = logs.LogWriter(tmp_path / "c" / "0.log")
    for number in range(200):
        writer.line("stdout", f"line {number}".encode())
    writer.close()
    parts = sorted(p.name for p in (tmp_path / "c").iterdir())
    assert parts == ["0.log", "0.log.1", "0.log.2", "0.log.3", "0.log.4"]
    assert "line 199" in "".join(p.read_text() for p in (tmp_path / "c").iterdir())


def test_a_log_that_begins_anew_is_followed_without_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MOST_BYTES", 300)
    state: Obj = {"name": "main", "restartCount": 0, "state": {"running": {}}}
    body: Obj = {
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"nodeName": "here", "containers": [{"name": "main"}]},
        "status": {"containerStatuses": [state]},
    }
    found = logs.PodLogs(tmp_path, lambda _: body)
    said = bytearray()

    async def write(text: bytes) -> None:
        said.extend(text)

    async def follow() -> None:
        writer = logs.LogWriter(found.folder(body, "main") / "0.log")
        following = asyncio.ensure_future(found.stream(body, {"follow": "true"}, write))
        for number in range(12):
            writer.line("stdout", f"{number}".encode())
            if number % 4 == 3:
                await asyncio.sleep(2 * logs.FOLLOW_SECONDS)
        state["state"] = {"terminated": {"exitCode": 0}}
        await asyncio.wait_for(following, 30)

    asyncio.run(follow())
    assert said.decode().split() == [str(n) for n in range(12)]


@pytest.mark.slow
@process_pods
def test_what_the_machine_refuses_is_told_and_tried_again(tmp_path: Path) -> None:
    for cluster in running(tmp_path, "--pods", "process", "--image", f"local/venv:1={tmp_path}", nodes=NODES):
        pods = f"{cluster.fresh()}/pods"
        in_the_way = cluster.state / "logs"
        shutil.rmtree(in_the_way, ignore_errors=True)
        in_the_way.write_text("")
        cluster.create(pods, shell("p", "true"))
        found = cluster.until(f"{pods}/p", lambda o: "CreateContainerError" in str(o["status"]))
        path = f"{pods.removesuffix('pods')}events?fieldSelector=reason=Failed"
        [told] = cluster.until(path, lambda o: bool(o["items"]))["items"]
        waiting = found["status"]["containerStatuses"][0]["state"]["waiting"]
        assert told["message"] == f"Error: {waiting['message']}"
        in_the_way.unlink()
        cluster.until(f"{pods}/p", lambda o: o["status"]["phase"] == "Succeeded")
