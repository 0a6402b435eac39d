"""The watcher's start in a cluster of 500 nodes and 5,000 pods, until its rows are what the cluster has"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from devcluster.testing.cluster import DevCluster, pod, running
from devcluster.testing.kube import Obj
from devcluster.testing.many import NODES, PODS, SPACE, Many
from portal.up.plan import REPOSITORY
from tests.bench import Figure
from tests.bench.helpers.parts import call, cpu_seconds, installation, memory_mib, rows_of

RUNS = 3
COUNT = 5000
CHANGED = 100  # pods deleted, and as many created, while no watcher runs
NODE_COUNT = 500
KINDS = 9
NOTHING = "00000000-0000-4000-8000-000000000000"
# A relist enqueues the workspace, which stands for all receivers.
IS_TOLD = f"""
SELECT (SELECT dirty_since IS NOT NULL FROM workspaces_workspace)
   AND (SELECT count(*) = {KINDS} FROM clusters_watcher WHERE seen_at > %s)
   AND (SELECT count(*) = {NODE_COUNT} FROM clusters_node)
"""


def measure() -> Iterator[Figure]:
    cluster_of = contextmanager(running)
    with (
        installation() as (folder, environ),
        cluster_of(folder, "--pods", "played", nodes=NODES) as cluster,
        rows_of(folder) as rows,
    ):
        own_id = call(environ, "seeds.watcher", str(cluster.kubeconfig))
        asyncio.run(_make(cluster, own_id))
        yield from _start("the first start", environ, cluster, rows)
        for run in range(1, RUNS + 1):
            asyncio.run(_change(cluster, own_id, run))
            yield from _start(f"restart {run}", environ, cluster, rows)


def _start(what: str, environ: dict[str, str], cluster: DevCluster, rows: Any) -> Iterator[Figure]:
    there = {pod["metadata"]["uid"] for pod in cluster.get(PODS)["items"]}
    rows.execute("UPDATE workspaces_workspace SET dirty_since = NULL")
    ((now,),) = rows.execute("SELECT now()")
    began = time.monotonic()
    watcher = subprocess.Popen(
        [sys.executable, "manage.py", "watch"],
        cwd=REPOSITORY,
        env={**environ, "BERTH_ROLE": "watcher", "BERTH_LOG_LEVEL": "WARNING"},
    )
    try:
        while rows.execute(IS_TOLD, [now]).fetchone() != (True,) or _known(rows) != there:
            assert time.monotonic() - began < 60, "the rows are not what the cluster has"
            time.sleep(0.05)
        yield Figure(f"{what}: until rows are true and it is told", time.monotonic() - began, "s")
        yield Figure(f"{what}: CPU", cpu_seconds(watcher.pid), "s")
        yield Figure(f"{what}: memory at most", memory_mib(watcher.pid, "VmHWM"), "MiB")
    finally:
        watcher.terminate()
        watcher.wait(10)


def _known(rows: Any) -> set[str]:
    return {uid for (uid,) in rows.execute("SELECT uid FROM clusters_podusage")}


def _pod(name: str, own_id: str, *, ours: bool) -> Obj:
    """Return a pod as large as a workspace's, most of which is the container's environment."""
    made = pod(name, tolerations=[{"operator": "Exists"}])
    container = made["spec"]["containers"][0]
    container["env"] = [{"name": f"SETTING_{n}", "value": f"value {n} " * 5} for n in range(30)]
    if ours:
        made["metadata"]["labels"] |= {
            "app.kubernetes.io/managed-by": "berth",
            "berth.dev/instance": own_id,
            "berth.dev/workspace": NOTHING,
            "berth.dev/run": NOTHING,
        }
    return made


async def _make(cluster: DevCluster, own_id: str) -> None:
    cluster.namespace(SPACE)
    async with Many(cluster) as many:
        bodies = [(PODS, _pod(f"p-{n}", own_id, ours=n % 2 == 0)) for n in range(COUNT)]
        version = (await many.call("GET", PODS))["metadata"]["resourceVersion"]
        async with asyncio.TaskGroup() as group:
            group.create_task(many.until_ready(COUNT, version))
            group.create_task(many.together(iter(bodies)))


async def _change(cluster: DevCluster, own_id: str, run: int) -> None:
    async with Many(cluster) as many:
        version = (await many.call("GET", PODS))["metadata"]["resourceVersion"]
        for n in range(CHANGED):
            await many.call("DELETE", f"{PODS}/p-{run * CHANGED + n}?gracePeriodSeconds=0")
        bodies = [(PODS, _pod(f"r-{run}-{n}", own_id, ours=n % 2 == 0)) for n in range(CHANGED)]
        async with asyncio.TaskGroup() as group:
            group.create_task(many.until_ready(CHANGED, version))
            group.create_task(many.together(iter(bodies)))
