"""What a workspace says of itself, to Berth alone: by its Jupyter, or by SSH with its own host key. And what is reached
through that Jupyter."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from aiohttp import web

from tests.workspaces.podlike import HOME, USER, Pod, pod_of_trial_image, until
from tests.workspaces.ways_in.gateway_stage import serving
from tests.workspaces.ways_in.notebook import Kernel, Terminal
from workspaces.gateway import inside as by_jupyter
from workspaces.gateway import tunnel, upstream
from workspaces.gateway.passes import Guest
from workspaces.ssh_jump import inside as by_ssh
from workspaces.state.inside import Inside

pytestmark = pytest.mark.slow

QUIET = Inside(kernels=0, terminals=0, ssh=0, keep_alive_seconds=None)


@pytest.fixture(scope="module", params=["asyncssh", "sshd"])
def running(request: pytest.FixtureRequest) -> Iterator[Pod]:
    """A pod with either SSH server."""
    pod = pod_of_trial_image(sshd=request.param == "sshd")
    try:
        pod.start()
        pod.wait_for_ssh()
        pod.wait_for_jupyter()
        yield pod
    finally:
        pod.destroy()


def asked(pod: Pod, text: str = "", token: str = "") -> Inside | None:
    async def once() -> Inside | None:
        try:
            address = f"http://{pod.address}:8888/"
            return await by_jupyter.ask(address, token or pod.gateway_token, text)
        finally:
            await upstream.close()

    return asyncio.run(once())


def asked_by_ssh(pod: Pod, text: str = "") -> Inside | None:
    secret = pod.folder / "berth" / "secret"
    host = by_ssh.Host(
        pod.address,
        2222,
        USER,
        (pod.folder / "host.pub").read_text(),
        (secret / "ssh_host_ed25519_key").read_text(),
    )
    return asyncio.run(by_ssh.ask(host, text))


def both(pod: Pod) -> tuple[Inside | None, Inside | None]:
    return asked(pod), asked_by_ssh(pod)


def of(**busy: Any) -> tuple[Inside, Inside]:
    """Answers of both ways. By SSH nothing is known of kernels."""
    values = {**vars(QUIET), **busy}
    return Inside(**values), Inside(**{**values, "kernels": None})


@contextlib.contextmanager
def session(pod: Pod, command: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    line = pod.ssh_line(command, *options)
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def test_nothing_runs_and_only_berth_may_ask(running: Pod) -> None:
    until("quiet", lambda: both(running) == of())
    assert asked(running, token="wrong") is None


def test_asking_is_no_activity(running: Pod) -> None:
    def last() -> str:
        found: str = json.loads(
            running.get("/api/status?no_track_activity=1", Authorization=f"token {running.token}")[2]
        )["last_activity"]
        return found

    before = last()
    time.sleep(0.01)
    assert asked(running) is not None
    assert last() == before


def test_a_kernel_that_says_nothing_is_busy_until_it_is_done(running: Pod) -> None:
    with Kernel(running) as kernel:
        kernel.run("1")
        until("idle", lambda: asked(running) == of()[0])
        kernel.start("import time; print('on', flush=True); time.sleep(60)")
        kernel.wait_until_printed("on")
        until("busy", lambda: asked(running) == of(kernels=1)[0])
        kernel.interrupt()
        until("idle again", lambda: asked(running) == of()[0])
        kernel._ask("DELETE", kernel.path)


def test_an_open_terminal_counts_while_a_program_runs_in_it(running: Pod) -> None:
    with Terminal(running) as terminal:
        terminal.run("true")
        until("an open shell waits", lambda: both(running) == of())
        terminal.socket.send(json.dumps(["stdin", "sleep 60\r"]))
        until("it runs", lambda: both(running) == of(terminals=1))
        terminal.socket.send(json.dumps(["stdin", "\x03"]))
        until("it waits again", lambda: both(running) == of())


def test_an_ssh_session_counts_while_a_program_runs_in_it(running: Pod) -> None:
    with session(running, "", "-tt") as shell:
        assert shell.stdin is not None
        shell.stdin.write(b"true\n")
        shell.stdin.flush()
        until("an open shell waits", lambda: both(running) == of())
        shell.stdin.write(b"sleep 60\n")
        shell.stdin.flush()
        until("it runs", lambda: both(running) == of(ssh=1))
    until("it is gone", lambda: both(running) == of())


def test_a_program_over_ssh_without_a_terminal_counts(running: Pod) -> None:
    with session(running, "exec tail -f - /dev/null"):
        until("it runs", lambda: both(running) == of(ssh=1))
        running.says("pkill -x tail || kill $(ps -C tail -o pid=)")
    until("it is gone", lambda: both(running) == of())
    with session(running, "echo begun; exec sleep 60") as editor:  # as an editor's connection does
        assert editor.stdout is not None and editor.stdout.readline() == b"begun\n"
        assert both(running) == of()


def test_a_keep_alive_is_a_file_that_is_touched(running: Pod) -> None:
    running.says('touch "$BERTH_KEEP_ALIVE"')
    for answer in both(running):
        assert answer is not None and answer.keep_alive_seconds is not None
        assert 0 <= answer.keep_alive_seconds < 20
    running.says('touch -d "2 hours ago" "$BERTH_KEEP_ALIVE"; touch -d "1 hour ago" ~/.berth-keep-alive')
    for answer in both(running):
        assert answer is not None and answer.keep_alive_seconds is not None
        assert 3590 <= answer.keep_alive_seconds < 3700
    running.says('rm "$BERTH_KEEP_ALIVE" ~/.berth-keep-alive')


def test_a_text_comes_into_every_open_terminal(running: Pod) -> None:
    with Terminal(running) as terminal, session(running, "", "-tt") as shell:
        terminal.run("true")
        assert shell.stdin is not None and shell.stdout is not None
        shell.stdin.write(b"echo be''gun\n")
        shell.stdin.flush()
        while b"begun" not in shell.stdout.readline():
            pass
        assert asked(running, "It stops soon: 한글") == QUIET
        while "It stops soon: 한글" not in str(terminal._receive()[1]):
            pass
        while "It stops soon: 한글".encode() not in shell.stdout.readline():
            pass
        assert asked_by_ssh(running, "Once more") is not None
        while b"Once more" not in shell.stdout.readline():
            pass


def test_the_host_key_opens_nothing_else(running: Pod, tmp_path: Path) -> None:
    own, key = running.key, tmp_path / "key"
    key.write_bytes((running.folder / "berth" / "secret" / "ssh_host_ed25519_key").read_bytes())
    key.chmod(0o600)
    running.key = key
    try:
        for command in ("echo opened", "", "cat /etc/passwd"):
            said = running.ssh(command, input=b"").stdout
            assert said.startswith(b'{"version": 1') and said.count(b"\n") == 1
        with_terminal = running.ssh("echo opened", "-tt", input=b"").stdout
        assert b"opened" not in with_terminal
        line = ["ssh", *running.ssh_options(), "-W", f"{running.address}:8888", f"{USER}@{running.address}"]
        forwarded = subprocess.run(line, input=b"GET /api HTTP/1.0\r\n\r\n", capture_output=True, timeout=30)
        assert b"200 OK" not in forwarded.stdout
        batch = [
            "timeout",
            "3",
            "sftp",
            *running.ssh_options(port_flag="-P"),
            "-b",
            "-",
            f"{USER}@{running.address}",
        ]
        assert subprocess.run(batch, input=b"ls /\n", capture_output=True, timeout=30).returncode != 0
    finally:
        running.key = own


def test_names_of_programs_do_not_come_out_or_spoil_the_answer(running: Pod) -> None:
    odd = f'{HOME}/a) S 1 1 "$(touch spoilt)"'
    running.says(f"cp /usr/bin/tail '{odd}'")
    with session(running, f"exec '{odd}' -f /dev/null"):
        until("it runs", lambda: both(running) == of(ssh=1))
        running.says("kill $(ps -A -o pid=,args= | sed -n 's/^ *\\([0-9]*\\) .*-f .dev.null$/\\1/p')")
    until("it is gone", lambda: both(running) == of())
    assert "spoilt" not in running.says("ls").splitlines()


# --- apps, to which the same server is the way


async def told_by_app(pod: Pod, port: int, token: str) -> tuple[int, str]:
    """Status and body of the app at the port, and what a websocket of it echoes."""
    guest = Guest(uuid4(), f"http://{pod.address}:8888", token, port)
    async with upstream.client_for(guest) as client:
        async with client.post("http://app/run?x=1", data=b"y" * 300_000) as answer:
            told = answer.status, await answer.text()
        async with client.ws_connect("http://app/socket", protocols=["v1"]) as socket:
            await socket.send_str("hello")
            assert (socket.protocol, await socket.receive_str()) == ("v1", "hello")
    return told


async def echo(request: web.Request) -> web.StreamResponse:
    if request.path == "/socket":
        socket = web.WebSocketResponse(protocols=("v1",))
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(message.data)
        return socket
    return web.Response(text=f"{request.raw_path} {len(await request.read())}")


def test_jupyter_leads_berth_to_an_app_on_the_containers_own_address(running: Pod) -> None:
    async def both_ways() -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", echo)
        async with serving(app) as port:
            assert await told_by_app(running, port, running.gateway_token) == (200, "/run?x=1 300000")
            with pytest.raises(aiohttp.ClientConnectionError):
                await told_by_app(running, port, "wrong")
        with pytest.raises(tunnel.NotListening):
            await told_by_app(running, port, running.gateway_token)

    asyncio.run(both_ways())
