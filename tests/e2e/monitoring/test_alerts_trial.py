"""Troubles switched on in the trial: mail and webhook tell of each once, though a worker is killed, or none is left."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from portal.up.plan import REPOSITORY
from tests.e2e.monitoring.own_parts import AWAY, OWN, OwnParts
from tests.e2e.monitoring.switches import CODES, INFO, NODES, Switches
from tests.e2e.stack import Client, Stack, until
from tests.shared.servers.prometheus import Server, prometheus
from tests.shared.servers.receiver import Receiver, receiver
from tests.shared.servers.smtp import MailServer, mail_server

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

WITHIN_SECONDS = 60
LONGEST_SECONDS = 300  # for a silent agent and a slowed GPU, health itself waits for minutes
ADMIN = "root@berth.test"
ROWS = """
SELECT a.code, r.way, d.state, d.attempts, extract(epoch FROM d.sent_at)::float8 AS sent,
    extract(epoch FROM d.sent_at - a.since)::float8 AS took,
    extract(epoch FROM d.sent_at - a.round_at)::float8 AS told
FROM monitoring_alertdelivery d
JOIN monitoring_alert a ON a.id = d.alert_id JOIN monitoring_alertroute r ON r.id = d.route_id
WHERE d.occasion = 'firing' AND a.code = ANY(%s)
"""
Found = Callable[[str, str], None]


@contextmanager
def second_worker(stack: Stack) -> Iterator[None]:
    environ = {**stack.environ, "BERTH_ROLE": "worker"}
    with (stack.folder / "second.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "qcluster"], cwd=REPOSITORY, env=environ, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def mail() -> Iterator[MailServer]:
    with mail_server() as server:
        yield server


@pytest.fixture(scope="module")
def hook() -> Iterator[Receiver]:
    with receiver() as server:
        yield server


@pytest.fixture(scope="module")
def figures() -> Iterator[Server]:
    with prometheus() as server:
        yield server


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, mail: MailServer, hook: Receiver) -> Iterator[Stack]:
    folder: Path = tmp_path_factory.mktemp("alerts")
    folder.chmod(0o711)
    (folder / "nodes.yaml").write_text(NODES)
    stack = Stack(
        folder / "state",
        BERTH_DEVCLUSTER_NODES=str(folder / "nodes.yaml"),
        BERTH_DEVCLUSTER_PODS="played",
        BERTH_EMAIL_URL=f"smtp://127.0.0.1:{mail.port}",
    )
    stack.start()
    try:
        make = f"from accounts.models import User; User.objects.filter(is_staff=True).update(email={ADMIN!r})"
        stack.manage("shell", "-c", make)
        body = {"name": "hook", "way": "webhook", "address": hook.url, "least_severity": "info"}
        status, made = admin_of(stack)("POST", "alert-routes/", body)
        assert status == 201, made
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="module")
def admin(stack: Stack) -> Client:
    return admin_of(stack)


def admin_of(stack: Stack) -> Client:
    return stack.client(stack.token("admin", "read", "workspaces", "admin"))


@pytest.fixture(scope="module")
def switches(stack: Stack, figures: Server) -> Switches:
    return Switches(stack, stack.client(stack.token("alice", "read", "workspaces")), figures)


def firing(hook: Receiver) -> Counter[str]:
    told = (one for got in hook.got for one in got.json["alerts"])
    return Counter(one["code"] for one in told if one["occasion"] == "firing")


def wait_until_told(stack: Stack, hook: Receiver, codes: Set[str]) -> None:
    deadline = time.monotonic() + LONGEST_SECONDS
    while missing := codes - firing(hook).keys():
        assert time.monotonic() < deadline, f"not told: {sorted(missing)}"
        time.sleep(1)
    rows = partial(stack.rows, ROWS, list(codes))
    until("all is sent", lambda: all(row["state"] == "sent" for row in rows()), 120, pause=1)


def told_once(stack: Stack, hook: Receiver, mail: MailServer, codes: Set[str]) -> list[dict[str, Any]]:
    """Assert that each code was told once by each way, and soon. Return the rows of its deliveries."""
    time.sleep(5)  # for what would come twice
    told, rows = firing(hook), stack.rows(ROWS, list(codes))
    assert {code: told[code] for code in codes} == dict.fromkeys(codes, 1)
    ways = Counter((row["way"], row["code"]) for row in rows)
    assert ways == Counter(
        [("webhook", code) for code in codes] + [("admins", code) for code in codes - INFO]
    )
    mails = [message["Message-ID"] for message in mail.messages if ADMIN in str(message["To"])]
    assert len(set(mails)) == len(mails)
    assert max(row["told"] for row in rows) <= WITHIN_SECONDS
    return rows


def slowest(seconds: dict[str, float]) -> str:
    ordered = sorted(seconds.items(), key=lambda item: -item[1])[:8]
    return ", ".join(f"{code} {took:.0f} s" for code, took in ordered)


def test_each_trouble_is_told_once_with_two_workers_of_which_one_is_killed(
    stack: Stack, admin: Client, switches: Switches, hook: Receiver, mail: MailServer, found: Found
) -> None:
    with second_worker(stack):
        switches.all(in_between=lambda: stack.kill("worker"))
        wait_until_told(stack, hook, CODES)
        rows = told_once(stack, hook, mail, CODES)
        took = max(row["took"] for row in rows)
        found(
            "troubles told",
            f"{len(CODES)} codes, {len(hook.got)} webhooks, slowest {took:.0f} s after it began",
        )
        found(
            "after the switch", slowest({row["code"]: row["sent"] - switches.at[row["code"]] for row in rows})
        )
        assert took <= WITHIN_SECONDS
        handle(admin)
        stack.end_faults()
        # An Xid's trouble lasts until the node boots anew, a failed test until an admin overrules it, a failed start
        # of a pod for ten minutes; and nobody repairs parts, or what the Prometheus tells.
        over = {
            code for code in CODES if code.startswith(("gpu_", "node_", "addresses_", "network_", "agent_"))
        }
        over -= {"gpu_lost", "gpu_link_fault", "gpu_test_failed", "node_versions_differ", "node_overloaded"}
        over -= {"node_network_faulty"}
        until("all is over", lambda: not over & unresolved(stack), 240, pause=1)
        ended = {one["code"]: one for one in admin("GET", "alerts/?state=resolved&limit=500")[1]["results"]}
        assert ended["node_lost"]["resolved_by"] is None and ended["node_lost"]["acknowledged_by"] == "admin"
        assert ended["gpu_memory_damaged"]["state"] == "resolved"


def unresolved(stack: Stack) -> set[str]:
    rows = stack.rows("SELECT code FROM monitoring_alert WHERE state <> 'resolved'")
    return {row["code"] for row in rows}


def handle(admin: Client) -> None:
    """Acknowledge one alert, silence another, resolve a third."""
    there = {one["code"]: one["id"] for one in admin("GET", "alerts/?state=firing&limit=500")[1]["results"]}
    for code, verb, body, state in (
        ("node_lost", "acknowledge", {}, "acknowledged"),
        ("gpu_slowed", "silence", {"minutes": 60}, "silenced"),
        ("gpu_lost", "resolve", {}, "resolved"),
    ):
        status, told = admin("POST", f"alerts/{there[code]}/{verb}/", body)
        assert (status, told["state"]) == (200, state), told


def test_what_is_wrong_with_berth_itself_is_told_once_without_a_worker(
    stack: Stack, switches: Switches, hook: Receiver, mail: MailServer, found: Found
) -> None:
    parts = OwnParts(switches, stack.client(stack.token("carol", "read", "workspaces")), mail)
    parts.all_but_the_cluster()
    wait_until_told(stack, hook, OWN - {AWAY})
    assert not stack.runs("worker")
    parts.repair_all_but_the_cluster()
    until("the worker is heard", lambda: not {"part_silent", "tasks_wait"} & unresolved(stack), 240, pause=1)
    number = stack.fault(status=503)
    wait_until_told(stack, hook, OWN)
    stack.end_faults(number)
    rows = told_once(stack, hook, mail, OWN)
    found("Berth's own parts", slowest({row["code"]: row["told"] for row in rows}))
    until("all is over", lambda: not {AWAY, "watch_silent"} & unresolved(stack), 240, pause=1)
