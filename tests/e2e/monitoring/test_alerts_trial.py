"""Troubles of health switched on in the trial: each reaches mail and webhook once, though a worker is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from portal.up.plan import REPOSITORY
from tests.e2e.stack import Client, Stack, until
from tests.shared.servers.receiver import Receiver, receiver
from tests.shared.servers.smtp import MailServer, mail_server

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]

WITHIN_SECONDS = 60
LONGEST_SECONDS = 240  # for a silent agent and a slowed GPU, health itself waits for minutes
# One node each, so that no trouble hides another: what is switched on there, by the code of its alert.
OF_NODES: dict[str, dict[str, Any]] = {
    "gpu_driver_not_loaded": {"agent": "driver_not_loaded"},
    "gpu_driver_mismatch": {"agent": "version_mismatch"},
    "gpu_nvml_failed": {"agent": "nvml_failed"},
    "gpu_uvm_missing": {"agent": "uvm_missing"},
    "gpu_vanished": {"agent": "devices_denied"},
    "gpu_stuck": {"agent": "nvml_hangs"},
    "gpu_agent_limited": {"agent": "no_permission"},
    "node_short_of_disk": {"pressure": "disk"},
    "node_short_of_memory": {"pressure": "memory"},
    "network_plugin_down": {"state": "not-ready"},
    "node_unwell": {"state": "runtime-down"},
    "node_lost": {"state": "off"},
    "agent_silent": {"agent": "silent"},
}
OF_GPUS: dict[str, dict[str, Any]] = {
    "gpu_lost": {"xid": 79},
    "gpu_memory_damaged": {"ecc_uncorrected": 2},
    "gpu_link_fault": {"xid": 74},
    "gpu_repair_due": {"row_remap": "pending"},
    "gpu_slowed": {"hot": True},
}
CODES = {*OF_NODES, *OF_GPUS, "volume_damaged", "storage_unwell"}
NODES = f"""
nodes:
- {{name: gpu, count: {len(OF_NODES) + len(OF_GPUS)}, cpu: 64, memory: 512Gi,
   gpus: {{product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 1, compute: "8.0"}}}}
- {{name: cpu, count: 1, cpu: 64, memory: 512Gi}}
lifecycle: {{grace_seconds: 2}}
back_off: {{first_seconds: 1, most_seconds: 2}}
"""
ROWS = """
SELECT a.code, r.way, d.state, d.attempts, extract(epoch FROM d.sent_at - a.since)::float8 AS took
FROM monitoring_alertdelivery d
JOIN monitoring_alert a ON a.id = d.alert_id JOIN monitoring_alertroute r ON r.id = d.route_id
WHERE d.occasion = 'firing'
"""


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


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with mail_server() as server:
        yield server


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as server:
        yield server


@pytest.fixture
def stack(tmp_path_factory: pytest.TempPathFactory, mail: MailServer) -> Iterator[Stack]:
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
        make = "from accounts.models import User; User.objects.filter(is_staff=True).update(email='root@berth.test')"
        stack.manage("shell", "-c", make)
        yield stack
    finally:
        stack.stop()


def switch_on(stack: Stack, alice: Client) -> None:
    nodes = [
        row["name"]
        for row in stack.rows("SELECT name FROM clusters_node WHERE name LIKE 'gpu-%' ORDER BY name")
    ]
    gpus = until("agents report", lambda: len(stack.rows("SELECT 1 FROM clusters_gpu")) >= len(nodes), 120)
    assert gpus
    for node, spec in zip(nodes, [*OF_NODES.values(), *OF_GPUS.values()], strict=True):
        if set(spec) & {"agent", "pressure", "state"}:
            stack.fault(node=node, **spec)
        else:
            stack.fault(gpu=f"{node}/0", **spec)
    for name, error, code in (
        ("damaged", "superblock", "volume_damaged"),
        ("unwell", "mds", "storage_unwell"),
    ):
        number = stack.fault(volume="mount", error=error)
        body = {
            "tenant": "demo",
            "name": name,
            "image": "jupyter",
            "pool": "cpu",
            "cpu": 1,
            "memory_mib": 1024,
        }
        status, made = alice("POST", "workspaces/", body)
        assert status == 201, made
        query = "SELECT 1 FROM monitoring_trouble WHERE code = %s"
        until(f"{code} is seen", partial(stack.rows, query, code), 120)
        stack.end_faults(number)


def firing(hook: Receiver) -> list[str]:
    return [one["code"] for got in hook.got for one in got.json["alerts"] if one["occasion"] == "firing"]


def test_each_trouble_reaches_mail_and_webhook_once(
    stack: Stack, mail: MailServer, hook: Receiver, found: Callable[[str, str], None]
) -> None:
    admin = stack.client(stack.token("admin", "read", "workspaces", "admin"))
    alice = stack.client(stack.token("alice", "read", "workspaces"))
    status, made = admin("POST", "alert-routes/", {"name": "hook", "way": "webhook", "address": hook.url})
    assert status == 201, made
    with second_worker(stack):
        switch_on(stack, alice)
        stack.kill("worker")
        until("all were told", lambda: set(firing(hook)) >= CODES, LONGEST_SECONDS, pause=1)
        until(
            "all is sent",
            lambda: not [row for row in stack.rows(ROWS) if row["state"] != "sent"],
            120,
            pause=1,
        )
        time.sleep(5)
        told = Counter(firing(hook))
        assert {code: told[code] for code in CODES} == dict.fromkeys(CODES, 1)
        rows = [row for row in stack.rows(ROWS) if row["code"] in CODES]
        assert Counter(row["way"] for row in rows) == {"admins": len(CODES), "webhook": len(CODES)}
        slowest = max(row["took"] for row in rows)
        mails = [message for message in mail.messages if "root@berth.test" in str(message["To"])]
        assert len({message["Message-ID"] for message in mails}) == len(mails)
        found(
            "troubles told",
            f"{len(CODES)} codes, {len(mails)} mails, {len(hook.got)} webhooks, slowest {slowest:.0f} s after it began",
        )
        assert slowest <= WITHIN_SECONDS
        handle(admin)
        stack.end_faults()
        # An Xid's trouble lasts until the node boots anew; a failed mount counts for ten minutes.
        stay = {"gpu_lost", "gpu_link_fault", "volume_damaged", "storage_unwell"}
        query = "SELECT code FROM monitoring_alert WHERE state <> 'resolved'"
        until(
            "all is over",
            lambda: not (CODES - stay) & {row["code"] for row in stack.rows(query)},
            240,
            pause=1,
        )
        over = {one["code"]: one for one in admin("GET", "alerts/?state=resolved&limit=500")[1]["results"]}
        assert over["node_lost"]["resolved_by"] is None and over["node_lost"]["acknowledged_by"] == "admin"
        assert over["gpu_memory_damaged"]["state"] == "resolved"


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
