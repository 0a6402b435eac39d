"""A change in the cluster until the browsers' sockets told it, a third of the sockets abandoned half-open"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPSConnection
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from devcluster.testing.kube import PATCHES, Kube
from tests.bench import Figure
from tests.bench.helpers.browsers import Browser
from tests.bench.helpers.parts import (
    CPU_NODES,
    call,
    cpu_of,
    cpu_seconds,
    memory_mib,
    processes_of,
    spent,
    spread,
    trial,
    wait_until_ready,
)
from tests.e2e.stack import Stack

WORKSPACE = "berth.dev/workspace"
SIZES = (500, 2000)
RUNS = 3
CHANGES = 20
TENANTS = 20
WORKSPACES = 2  # of each tenant
SOCKETS_OF_EACH = 4  # the list, the tenant's workspaces, the notices
OPENED_AT_ONCE = 20
# Berth pings every 20 s and waits as long for an answer; then it ends the socket.
ENDED_WITHIN_SECONDS = 50


def measure() -> Iterator[Figure]:
    with trial(CPU_NODES) as stack:
        people = max(SIZES) // SOCKETS_OF_EACH // TENANTS
        teams = [Team(*team) for team in call(stack.environ, "seeds.sockets", TENANTS, people, WORKSPACES)]
        wait_until_ready(stack, TENANTS * WORKSPACES)
        for size in SIZES:
            yield from asyncio.run(_with(stack, teams, size))


@dataclass(frozen=True)
class Team:
    workspaces: list[str]
    sessions: list[str]

    def paths(self) -> list[str]:
        return ["/ws/workspaces/", *(f"/ws/workspaces/{pk}/" for pk in self.workspaces), "/ws/notices/"]


class Restarts:
    """Containers that their node restarts: each restart is a change that all pages of the workspace show."""

    def __init__(self, kubeconfig: Path) -> None:
        kube = Kube(kubeconfig)
        found = kube.get("/api/v1/pods", labelSelector=WORKSPACE)["items"]
        self._pods = {pod["metadata"]["labels"][WORKSPACE]: pod for pod in found}
        self._numbers = count(1 + max(_status(pod)["restartCount"] for pod in found))
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        self._connection = HTTPSConnection(urlsplit(kube.url).netloc, context=trusting)
        self._headers = {"Authorization": f"Bearer {kube.token}", "Content-Type": PATCHES["merge"]}

    def restart(self, workspace: str) -> None:
        metadata = self._pods[workspace]["metadata"]
        status = _status(self._pods[workspace]) | {"restartCount": next(self._numbers)}
        self._connection.request(
            "PATCH",
            f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status",
            json.dumps({"status": {"containerStatuses": [status]}}),
            self._headers,
        )
        answer = self._connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()


def _status(pod: Any) -> dict[str, Any]:
    found: dict[str, Any] = pod["status"]["containerStatuses"][0]
    return found


async def _with(stack: Stack, teams: Sequence[Team], size: int) -> list[Figure]:
    web = stack.pid("web")
    memory, files, cpu, began = memory_mib(web), _open_files(web), cpu_seconds(web), time.monotonic()
    browsers = await _open(stack, teams, size)
    figures = [
        Figure(f"{size} sockets: until all are open", time.monotonic() - began, "s"),
        Figure(f"{size} sockets: CPU of web for each", (cpu_seconds(web) - cpu) / size * 1000, "ms"),
        Figure(f"{size} sockets: memory of web", memory_mib(web), f"MiB ({memory:.0f} before)"),
    ]
    abandoned, live = browsers[::3], [browser for n, browser in enumerate(browsers) if n % 3]
    left_at = time.monotonic()
    for n, browser in enumerate(abandoned):
        browser.vanish() if n % 4 == 0 else browser.abandon()
    processes = processes_of(stack)
    restarts, changes = Restarts(stack.folder / "kubeconfig"), list[list[float]]()
    for run in range(1, RUNS + 1):
        before = cpu_of(processes)
        changing = [(teams[n % len(teams)], run % WORKSPACES) for n in range(CHANGES)]
        changes = [await _change(restarts, live, team, team.workspaces[which]) for team, which in changing]
        title, after = f"{size} sockets, run {run}", cpu_of(processes)
        figures += [
            Figure(f"{title}: to the first socket, median", median(map(min, changes)) * 1000, "ms"),
            *spread(f"{title}: to every socket", [lag for lags in changes for lag in lags]),
            *(
                Figure(f"{title}: CPU of {part} for each change", seconds / CHANGES * 1000, "ms")
                for part, seconds in spent(before, after).items()
            ),
        ]
    kept = await _until_ended(web, files, len(live), left_at)
    figures += [
        Figure(f"{size} sockets: each change went to", sum(map(len, changes)) / CHANGES, "sockets"),
        Figure(f"{size} sockets: {len(abandoned)} abandoned ones were kept for", kept, "s"),
        Figure(f"{size} sockets: memory of web then", memory_mib(web), "MiB"),
    ]
    for browser in browsers:
        browser.close()
    return figures


async def _open(stack: Stack, teams: Sequence[Team], size: int) -> list[Browser]:
    wanted = [
        (path, session)
        for number in range(size // SOCKETS_OF_EACH // len(teams) + 1)
        for team in teams
        if number < len(team.sessions)
        for session in (team.sessions[number],)
        for path in team.paths()
    ][:size]
    waiting, browsers = iter(enumerate(wanted)), list[Browser]()

    async def work() -> None:
        for number, (path, session) in waiting:
            browser = Browser(path, stack.address, session)
            await browser.open("127.0.0.1", stack.port, reads_little=number % 2 == 0)
            await asyncio.wait_for(browser.heard.wait(), 60)
            browsers.append(browser)

    async with asyncio.TaskGroup() as group:
        for _ in range(OPENED_AT_ONCE):
            group.create_task(work())
    return browsers


async def _change(restarts: Restarts, live: Sequence[Browser], team: Team, workspace: str) -> list[float]:
    """Change a workspace. Return the seconds until each socket that shows it got the change."""
    for browser in live:
        browser.forget()
    showing = [
        browser
        for browser in live
        if browser.path == f"/ws/workspaces/{workspace}/"
        or (browser.path == "/ws/workspaces/" and browser.session in team.sessions)
    ]
    lags: dict[Browser, float] = {}
    began = time.monotonic()
    await asyncio.to_thread(restarts.restart, workspace)
    while len(lags) < len(showing):
        assert time.monotonic() - began < 30, f"{len(lags)} of {len(showing)} sockets were told"
        await asyncio.sleep(0.05)
        for browser in showing:
            for at, message in browser.messages():
                if message["type"] == "event" or message.get("workspace", {}).get("id") == workspace:
                    lags.setdefault(browser, at - began)
    await asyncio.sleep(0.1)
    return list(lags.values())


async def _until_ended(web: int, before: int, live: int, left_at: float) -> float:
    """Return how many seconds the abandoned sockets were kept."""
    while _open_files(web) - before > live + 4:
        assert time.monotonic() - left_at < ENDED_WITHIN_SECONDS, (
            f"{_open_files(web) - before - live} are kept"
        )
        await asyncio.sleep(0.5)
    return time.monotonic() - left_at


def _open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
