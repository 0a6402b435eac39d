"""Everything but the cluster is lost, and restored from a backup: what runs goes on, and the ledger is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.scene import launch, now, wait
from tests.e2e.stack import Stack, running, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

PARTS = ("web", "worker", "watcher", "collector", "ssh-jump")
LOOK = "from clusters.models import Cluster; from monitoring.drift.looks import look; look(Cluster.objects.get().pk)"
BILLED = "SELECT sum(microseconds) / 1e6 AS held FROM quotas_ledgerentry WHERE claim_id = %s"


def pods(berth: Stack) -> dict[str, tuple[str, Any]]:
    """Return the uid and the start of each pod of a workspace."""
    found = (pod for pod in berth.in_cluster("Pod") if pod["metadata"]["name"].startswith("ws-"))
    return {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["status"].get("startTime")) for pod in found
    }


def test_running_workspaces_outlive_the_loss_of_the_database(tmp_path: Path) -> None:
    with running("restore", BERTH_DEVCLUSTER_PODS="played") as berth:
        alice = berth.client(berth.token("alice", "read", "workspaces"))
        runs = wait(alice, launch(alice, "demo", "runs"), "ready")
        rests = wait(alice, launch(alice, "demo", "rests"), "ready")
        alice("POST", f"workspaces/{rests['id']}/stop/")
        wait(alice, rests, "stopped")
        backup = str(tmp_path / "berth.zip")
        berth.manage("backup", backup)
        since = wait(alice, launch(alice, "demo", "since"), "ready")
        before = pods(berth)
        assert set(before) == {f"ws-{runs['id']}", f"ws-{since['id']}"}

        for part in PARTS:
            berth.supervise("stop", part)
        with berth.database(read_only=False) as database:
            database.execute("DROP SCHEMA public CASCADE")
            database.execute("CREATE SCHEMA public")
        berth.manage("migrate", "--verbosity", "0")
        berth.manage("restore", backup)
        for part in PARTS:
            berth.supervise("start", part)
        until("the web process is there again", berth.is_ready)

        # Tokens are of the moment of the backup, too.
        until("the watch has seen the cluster", lambda: berth.rows("SELECT 1 FROM clusters_node"))
        assert now(alice, runs)["phase"] == "ready"
        assert now(alice, rests)["phase"] == "stopped"
        assert alice("GET", f"workspaces/{since['id']}/")[0] == 404
        berth.manage("shell", "-c", LOOK)
        found = berth.rows("SELECT name FROM monitoring_finding WHERE what = 'unwanted' AND kind = 'Pod'")
        assert [row["name"] for row in found] == [f"ws-{since['id']}"]  # told, and left alone
        alice("POST", f"workspaces/{rests['id']}/start/")
        wait(alice, rests, "ready")
        after = pods(berth)
        assert {name: after[name] for name in before} == before

        alice("POST", f"workspaces/{runs['id']}/stop/")
        wait(alice, runs, "stopped")
        [claim] = berth.rows(
            "SELECT id, extract(epoch FROM released_at - admitted_at) AS held FROM quotas_claim WHERE holder_id = %s",
            runs["id"],
        )
        assert berth.rows(BILLED, claim["id"])[0]["held"] == pytest.approx(claim["held"])
