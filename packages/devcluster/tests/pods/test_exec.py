"""exec in process pods: streams, terminal, exit code, and rights not above those of the pod."""

import asyncio
import json
import os
import shutil
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import websocket
from kubernetes import client, config, stream

from devcluster.kubelet.processes.sessions import Output
from devcluster.testing.cluster import DevCluster, is_ready, pod, running
from devcluster.testing.kube import Kube
from helpers.shells import NODES, PROCESSES, process_pods, shell

pytestmark = process_pods
ARGUMENTS = PROCESSES
V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
OUTPUT = {"stdout": "true", "stderr": "true"}


@pytest.fixture(scope="module")
def box(cluster: DevCluster) -> str:
    """Path of a pod that only waits."""
    path = f"{cluster.fresh()}/pods"
    body = shell("box", "sleep 600", resources={"limits": {"memory": "256Mi"}})
    body["spec"]["containers"][0]["env"].append({"name": "GREETING", "value": "hello"})
    cluster.create(path, body)
    cluster.until(f"{path}/box", is_ready)
    return f"{path}/box"


class Channel:
    """Connection of one exec over a WebSocket, as clients make it."""

    def __init__(self, kube: Kube, path: str, *command: str, protocol: str = V5, **options: str):
        query = urlencode([("command", part) for part in command] + list((options or OUTPUT).items()))
        self._socket = websocket.create_connection(
            f"{kube.url.replace('https', 'wss')}{path}/exec?{query}",
            subprotocols=[protocol],
            header=[f"Authorization: Bearer {kube.token}"],
            sslopt={"cert_reqs": ssl.CERT_NONE},
            timeout=20,
        )
        self.protocol = self._socket.getsubprotocol()

    def send(self, channel: int, content: bytes) -> None:
        self._socket.send_binary(bytes([channel]) + content)

    def until(self, channel: int, text: str) -> None:
        said = ""
        while text not in said:
            data = self._next()
            said += data[1:].decode() if data[0] == channel else ""

    def end(self) -> tuple[str, str, dict[str, Any]]:
        """Return stdout, stderr and the final status."""
        said: dict[int, bytes] = {1: b"", 2: b""}
        while data := self._next():
            said[data[0]] = said.get(data[0], b"") + data[1:]
        return said[1].decode(), said[2].decode(), json.loads(said[3])

    def _next(self) -> bytes:
        data = self._socket.recv()
        return data if isinstance(data, bytes) else data.encode()

    def hang_up(self) -> None:
        self._socket.close()


@pytest.mark.parametrize("protocol", [V5, V4])
def test_streams_come_apart_and_success_is_told(cluster: DevCluster, box: str, protocol: str) -> None:
    channel = Channel(cluster, box, "sh", "-c", "echo out; echo err >&2", protocol=protocol)
    assert channel.protocol == protocol
    assert channel.end() == ("out\n", "err\n", {"metadata": {}, "status": "Success"})


def test_an_exit_code_is_told_in_the_real_form(cluster: DevCluster, box: str) -> None:
    _, _, status = Channel(cluster, box, "sh", "-c", "exit 3").end()
    assert status == {
        "metadata": {},
        "status": "Failure",
        "message": "command terminated with non-zero exit code: command terminated with exit code 3",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
    }


def test_stdin_is_read_until_its_channel_is_closed(cluster: DevCluster, box: str) -> None:
    channel = Channel(cluster, box, "cat", stdin="true", stdout="true")
    text = b"a line of text\n" * 20000
    for at in range(0, len(text), 30000):
        channel.send(0, text[at : at + 30000])
    channel.send(255, bytes([0]))
    out, _, status = channel.end()
    assert out.encode() == text
    assert status["status"] == "Success"


def test_a_terminal_has_its_size_and_follows_it(cluster: DevCluster, box: str) -> None:
    options = {"stdin": "true", "stdout": "true", "tty": "true"}
    channel = Channel(cluster, box, "sh", "-c", "tty; read x; stty size; test -t 0 && exit 4", **options)
    channel.until(1, "/dev/pts/")
    channel.send(4, b'{"Width": 123, "Height": 45}')
    channel.send(0, b"go\n")
    out, _, status = channel.end()
    assert "45 123\r\n" in out
    assert status["details"]["causes"][0]["message"] == "4"


def test_ctrl_c_interrupts_what_runs_in_a_terminal(cluster: DevCluster, box: str) -> None:
    options = {"stdin": "true", "stdout": "true", "tty": "true"}
    script = "import time; print('begun', flush=True); time.sleep(60)"  # a shell may fork and miss it
    channel = Channel(cluster, box, "python", "-c", script, **options)
    channel.until(1, "begun")
    channel.send(0, b"\x03")
    _, _, status = channel.end()
    assert status["details"]["causes"][0]["message"] == "130"


def test_a_command_that_is_not_there_is_an_internal_error_in_words(cluster: DevCluster, box: str) -> None:
    _, _, status = Channel(cluster, box, "nonesuch").end()
    assert status["reason"] == "InternalError"
    assert status["message"].endswith(
        'unable to start container process: exec: "nonesuch": executable file not found in $PATH'
    )


def test_a_probe_whose_command_is_too_long_harms_nobody(cluster: DevCluster) -> None:
    path = f"{cluster.fresh()}/pods"
    body = shell("p", "sleep 600")
    probe = {"exec": {"command": ["echo", "x" * 300_000]}, "periodSeconds": 1}
    body["spec"]["containers"][0]["readinessProbe"] = probe
    cluster.create(path, body)
    events = f"{path.removesuffix('/pods')}/events?fieldSelector=reason=Unhealthy"
    [told, *_] = cluster.until(events, lambda o: bool(o["items"]))["items"]
    assert told["message"].endswith("exec failed: argument list too long")
    cluster.until(f"{path}/p", lambda o: "running" in o["status"]["containerStatuses"][0]["state"])
    out, _, _ = Channel(cluster, f"{path}/p", "echo", "well").end()
    assert out == "well\n"


def said(cluster: DevCluster, box: str, script: str) -> str:
    out, err, status = Channel(cluster, box, "sh", "-c", script).end()
    assert status["status"] == "Success", err
    return out


RIGHTS = "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)' /proc/{}/status"


def test_it_is_the_pods_user_with_the_pods_environment_and_not_one_right_more(
    cluster: DevCluster, box: str
) -> None:
    assert said(cluster, box, "echo $GREETING $POD_IP; id -un; hostname").split() == [
        "hello",
        cluster.get(box)["status"]["podIP"],
        "jovyan",
        "box",
    ]
    main = "$(pgrep -x sleep | head -1)"
    assert said(cluster, box, RIGHTS.format("self")) == said(cluster, box, RIGHTS.format(main))
    rights = said(cluster, box, RIGHTS.format("self"))
    assert "NoNewPrivs:\t1" in rights
    assert rights.count("0000000000000000") == 5


@pytest.mark.parametrize("what", ["cgroup", "mountinfo", "limits"])
def test_it_lives_in_the_same_places_as_the_pod(cluster: DevCluster, box: str, what: str) -> None:
    main = "$(pgrep -x sleep | head -1)"
    assert said(cluster, box, f"cat /proc/self/{what}") == said(cluster, box, f"cat /proc/{main}/{what}")


def test_its_namespaces_are_the_pods(cluster: DevCluster, box: str) -> None:
    look = "for n in user mnt pid net ipc uts; do readlink /proc/{}/ns/$n; done"
    main = "$(pgrep -x sleep | head -1)"
    mine = said(cluster, box, look.format("self"))
    assert mine == said(cluster, box, look.format(main))
    assert mine.split()[1] != Path("/proc/self/ns/mnt").readlink().name


@pytest.mark.parametrize("tty", ["false", "true"])
def test_no_descriptor_but_its_streams_reaches_it(cluster: DevCluster, box: str, tty: str) -> None:
    script = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd') if n.isdigit())[:-1])"
    out, _, _ = Channel(cluster, box, "python", "-c", script, stdin="true", stdout="true", tty=tty).end()
    assert out.strip() == "[0, 1, 2]"


def test_the_process_that_holds_the_tie_cannot_be_looked_into_or_traced(
    cluster: DevCluster, box: str
) -> None:
    script = "ls /proc/1/fd 2>&1; cat /proc/1/environ 2>&1; cat /proc/1/mem 2>&1; true"
    assert said(cluster, box, script).count("Permission denied") == 3


def test_the_streams_can_be_opened_by_their_names(cluster: DevCluster, box: str) -> None:
    assert said(cluster, box, "echo one >/dev/stdout; echo two >/proc/self/fd/1") == "one\ntwo\n"


def test_when_the_client_goes_the_command_goes_too(cluster: DevCluster, box: str) -> None:
    channel = Channel(cluster, box, "sh", "-c", "echo begun; exec sleep 4321")
    channel.until(1, "begun")
    channel.hang_up()
    end = time.monotonic() + 60
    while "4321" in said(cluster, box, "pgrep -af 'sleep [4]321' || true"):
        assert time.monotonic() < end
        time.sleep(0.2)


def test_when_the_container_ends_so_does_the_exec(cluster: DevCluster) -> None:
    path = f"{cluster.fresh()}/pods"
    cluster.create(path, shell("p", "sleep 600"))
    cluster.until(f"{path}/p", is_ready)
    channel = Channel(cluster, f"{path}/p", "sh", "-c", "echo begun; sleep 600")
    channel.until(1, "begun")
    cluster.call("DELETE", f"{path}/p", {"gracePeriodSeconds": 0})
    _, _, status = channel.end()
    assert status["details"]["causes"][0]["message"] == "137"


def test_two_run_beside_each_other(cluster: DevCluster, box: str) -> None:
    first = Channel(cluster, box, "cat", stdin="true", stdout="true")
    second = Channel(cluster, box, "sh", "-c", "echo second")
    assert second.end()[0] == "second\n"
    first.send(0, b"first")
    first.until(1, "first")
    first.hang_up()


def test_what_is_no_upgrade_or_speaks_spdy_is_refused(cluster: DevCluster, box: str) -> None:
    assert cluster.call("GET", f"{box}/exec", command="id", stdout="true")[1]["message"] == (
        "Upgrade request required"
    )
    spdy = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
    code, told = cluster.call("POST", f"{box}/exec", headers=spdy, command="id", stdout="true")
    assert (code, "SPDY" in told["message"]) == (400, True)


@pytest.mark.parametrize("subresource", ["attach", "portforward"])
def test_what_is_not_done_is_refused_in_words(cluster: DevCluster, box: str, subresource: str) -> None:
    code, told = cluster.call("POST", f"{box}/{subresource}", stdout="true")
    assert (code, told["message"]) == (
        400,
        f"devcluster does not do pods/{subresource}: exec and logs work",
    )


def test_a_container_that_does_not_run_is_not_found(cluster: DevCluster) -> None:
    path = f"{cluster.fresh()}/pods"
    cluster.create(path, shell("p", "true"))
    cluster.until(f"{path}/p", lambda o: o["status"].get("phase") == "Succeeded")
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        Channel(cluster, f"{path}/p", "id")
    assert refused.value.status_code == 500


def test_the_official_client_runs_a_command(cluster: DevCluster, box: str) -> None:
    api = client.CoreV1Api(config.new_client_from_config(str(cluster.kubeconfig)))  # type: ignore[no-untyped-call]
    _, _, _, _, namespace, _, name = box.split("/")
    answer = stream.stream(
        api.connect_get_namespaced_pod_exec,
        name,
        namespace,
        command=["sh", "-c", "echo $GREETING"],
        stdout=True,
        stderr=True,
        stdin=False,
        tty=False,
    )
    assert answer == "hello\n"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_runs_a_command_and_ends_as_it_does(cluster: DevCluster, box: str) -> None:
    _, _, _, _, namespace, _, name = box.split("/")
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), "-n", namespace, "exec"]
    done = subprocess.run(
        [*command, name, "--", "sh", "-c", "echo out; exit 5"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (5, "out\n")
    assert "command terminated with exit code 5" in done.stderr
    fed = subprocess.run([*command, "-i", name, "--", "cat"], input="fed\n", capture_output=True, text=True)
    assert fed.stdout == "fed\n"


def test_a_played_pod_says_that_nothing_runs_in_it(tmp_path: Path) -> None:
    for played in running(tmp_path, "--pods", "played", nodes=NODES):
        path = f"{played.fresh()}/pods"
        played.create(path, pod("p"))
        played.until(f"{path}/p", is_ready)
        _, _, status = Channel(played, f"{path}/p", "id").end()
        assert status["message"].endswith("this pod is only played: nothing runs in it")


async def test_what_a_terminal_said_is_read_also_after_it_ended() -> None:
    ours, theirs = os.openpty()
    reader = asyncio.StreamReader()
    terminal = os.fdopen(ours, "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: Output(reader), terminal)
    os.write(theirs, b"the last words")
    os.close(theirs)
    await asyncio.sleep(0.1)  # both have come before anybody reads
    assert await reader.read() == b"the last words"
