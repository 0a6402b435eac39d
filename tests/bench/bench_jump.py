"""SSH through Berth's jump, beside the same workspace reached directly"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median

import asyncssh

from portal.up.plan import REPOSITORY
from tests.bench import Figure
from tests.bench.helpers.parts import call, cpu_seconds, installation, memory_mib, spread
from tests.e2e.stack import until
from tests.shared.ports import free_port

SIZE_MIB = 256
TIMES = 5
TUNNELS, PER_CONNECTION = 200, 50
ROUNDS = 10
AGAIN = 5
MIB = 2**20


def measure() -> Iterator[Figure]:
    with installation() as (folder, environ):
        key, ports = folder / "id", (free_port(), free_port())
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        far = multiprocessing.get_context("spawn").Process(target=_workspace, args=(*ports, str(key)))
        far.start()
        try:
            workspace = call(environ, "seeds.jump", str(key), ports[0])
            with _jump(environ) as (pid, port):
                yield from _downloads(ports[0], port, workspace, key, pid)
                call(environ, "seeds.change_ssh_port", ports[1])
                yield from asyncio.run(_tunnels(port, workspace, key, pid))
        finally:
            far.terminate()
            far.join()


# --- one download, by OpenSSH's own client


def _downloads(direct: int, port: int, workspace: str, key: Path, pid: int) -> Iterator[Figure]:
    options = ("UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=no", "LogLevel=ERROR")
    own = ["-i", str(key), *(f"-o{option}" for option in options)]
    at_jump = f"ssh -F none {' '.join(own)} -W %h:%p -p {port} bob@127.0.0.1"
    ways = {
        "direct": [*own, "-p", str(direct), "jovyan@127.0.0.1"],
        "through Berth": [*own, "-o", f"ProxyCommand={at_jump}", f"jovyan@berth-{workspace}"],
    }
    for way in ways.values():
        _download(way, 1)
    before, spent = memory_mib(pid), cpu_seconds(pid)
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(TIMES):  # in turn, since this machine has other work
        for name, way in ways.items():
            rates[name].append(_download(way, SIZE_MIB))
    spent = cpu_seconds(pid) - spent
    for name, found in rates.items():
        yield Figure(f"{SIZE_MIB} MiB {name}, slowest", min(found), "MiB/s")
        yield Figure(f"{SIZE_MIB} MiB {name}, median", median(found), "MiB/s")
    shares = [100 * slow / fast for fast, slow in zip(*rates.values(), strict=True)]
    yield Figure("through Berth beside direct, median", median(shares), "%")
    yield Figure("CPU of the jump for a GiB", spent / TIMES * 1024 / SIZE_MIB, "s")
    yield Figure("memory of the jump before", before, "MiB")
    yield Figure(f"after {TIMES} downloads", memory_mib(pid), "MiB")


def _download(way: list[str], mib: int) -> float:
    """Return MiB per second, without the time that signing in takes."""
    command = ["ssh", "-F", "none", *way, str(mib)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as ssh:
        assert ssh.stdout is not None
        size = len(ssh.stdout.read(1))
        began = time.monotonic()
        while piece := ssh.stdout.read(MIB):
            size += len(piece)
    assert size == mib * MIB, size
    return mib / (time.monotonic() - began)


# --- many tunnels, and readers that do not read


Channel = tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]


async def _tunnels(port: int, workspace: str, key: Path, pid: int) -> list[Figure]:
    figures = []
    async with _open(port, workspace, key, TUNNELS) as channels:
        figures += await _echoes(f"an echo with {TUNNELS} tunnels open", channels)
        figures.append(Figure(f"memory of the jump with {TUNNELS} tunnels open", memory_mib(pid), "MiB"))
    closed = memory_mib(pid)
    for _ in range(AGAIN):
        async with _open(port, workspace, key, TUNNELS):
            pass
    figures += [
        Figure("when they are closed", closed, "MiB"),
        Figure(f"when {AGAIN} times as many came and went", memory_mib(pid), "MiB"),
    ]
    async with _open(port, workspace, key, 10) as alone, _open(port, workspace, key, PER_CONNECTION) as slow:
        for _reader, writer in slow:
            writer.write(b"flood")
        await asyncio.sleep(3)
        figures += await _echoes(f"an echo beside {PER_CONNECTION} floods that nobody reads", alone)
        figures.append(Figure(f"memory of the jump with {PER_CONNECTION} such", memory_mib(pid), "MiB"))
    return figures


@asynccontextmanager
async def _open(port: int, workspace: str, key: Path, tunnels: int) -> AsyncIterator[list[Channel]]:
    async with contextlib.AsyncExitStack() as stack:
        channels: list[Channel] = []
        while len(channels) < tunnels:
            connection = await stack.enter_async_context(
                asyncssh.connect(
                    "127.0.0.1", port, username="bob", client_keys=[str(key)], known_hosts=None, config=None
                )
            )
            number = min(PER_CONNECTION, tunnels - len(channels))
            channels += [await connection.open_connection(f"berth-{workspace}", 22) for _ in range(number)]
        yield channels


async def _echoes(title: str, channels: list[Channel]) -> list[Figure]:
    """Measure echoes one after the other, over all channels in turn."""
    took = []
    for _ in range(ROUNDS * TUNNELS // len(channels)):
        for reader, writer in channels:
            began = time.perf_counter()
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
            took.append(time.perf_counter() - began)
    return spread(title, took)[:2]


# --- the servers that are measured


def _workspace(ssh_port: int, echo_port: int, key: str) -> None:
    """Run an SSH server that sends as many MiB as its command says, and a port that echoes or floods."""

    async def give(process: asyncssh.SSHServerProcess[bytes]) -> None:
        piece = b"x" * MIB
        for _ in range(int(process.command or 0)):
            process.stdout.write(piece)
            await process.stdout.drain()
        process.exit(0)

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(65536):
                while piece == b"flood":
                    writer.write(b"x" * MIB)
                    await writer.drain()
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def both() -> None:
        await asyncssh.listen(
            "127.0.0.1",
            ssh_port,
            server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
            authorized_client_keys=f"{key}.pub",
            process_factory=give,
            encoding=None,
        )
        server = await asyncio.start_server(echo, "127.0.0.1", echo_port)
        await server.serve_forever()

    asyncio.run(both())


@contextmanager
def _jump(environ: dict[str, str]) -> Iterator[tuple[int, int]]:
    port = free_port()
    environ |= {"BERTH_ROLE": "ssh-jump", "BERTH_SSH_JUMP_LISTEN": f"127.0.0.1:{port}"}
    environ |= {"BERTH_LOG_LEVEL": "WARNING"}
    process = subprocess.Popen([sys.executable, "manage.py", "ssh_jump"], cwd=REPOSITORY, env=environ)

    async def answers() -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            heard = await reader.readline()
            writer.close()
        except OSError:
            return False
        return heard.startswith(b"SSH-2.0")

    try:
        until("the jump answers", lambda: asyncio.run(answers()))
        yield process.pid, port
    finally:
        process.terminate()
        process.wait(10)
