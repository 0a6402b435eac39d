"""Three clusters under one Berth: one hangs, is killed and comes back, and the other two notice nothing."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from devcluster.testing.cluster import DevCluster
from devcluster.testing.kube import Kube
from portal.up.plan import REPOSITORY
from tests.e2e.stack import Stack, until
from tests.proof.faulty_world import simulated
from tests.proof.host import TENANT, Person
from tests.proof.invariants import labels_of
from tests.shared.ports import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]

PRODUCT = "NVIDIA-A100-SXM4-80GB"
# Nodes of the same names in all three.
NODES = f"""
nodes:
- {{name: gpu, count: 2, cpu: 64, memory: 512Gi,
   gpus: {{product: {PRODUCT}, memory_mib: 81920, count: 4, compute: "8.0"}}}}
"""
HOME, EAST, WEST = "trial", "east", "west"
POOLS = {HOME: "a100", EAST: "east", WEST: "west"}
FLAVORS = {HOME: "a100-1", EAST: "east", WEST: "west"}
EACH, ROOM = 2, 8  # workspaces of a round in each cluster; GPUs of a cluster
CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE usename = current_user"
MOST_CONNECTIONS = (
    80  # PostgreSQL has 100 by default; each thread of a watch with its own took 37 for a cluster
)
KINDS = {
    "pods": "/api/v1/pods",
    "services": "/api/v1/services",
    "secrets": "/api/v1/secrets",
    "claims": "/api/v1/persistentvolumeclaims",
}
Found = Callable[[str, str], None]


class Site:
    """A Berth with its own trial cluster and two more, by the names of their rows."""

    def __init__(self, stack: Stack, more: dict[str, DevCluster]) -> None:
        self.stack, self.more = stack, more
        self.kubes: dict[str, Kube] = {HOME: Kube(stack.folder / "kubeconfig"), **more}
        self.person = Person(stack.client(stack.token("alice", "read", "workspaces", "jobs")))

    def launch(self, cluster: str, name: str) -> str:
        body = {"tenant": TENANT, "name": name, "image": "jupyter", "flavor": FLAVORS[cluster]}
        return str(self.person.ask("POST", "workspaces/", body)["id"])

    def launch_round(self, name: str, *clusters: str) -> dict[str, list[str]]:
        """Launch as many in each of the clusters, in turn."""
        made: dict[str, list[str]] = {cluster: [] for cluster in clusters}
        for number in range(EACH):
            for cluster in clusters:
                made[cluster].append(self.launch(cluster, f"{name}-{cluster}-{number}"))
        return made

    def is_in(self, phase: str, workspaces: list[str]) -> bool:
        query = "SELECT id FROM workspaces_workspace WHERE phase = %s AND id::text = ANY(%s)"
        return len(self.stack.rows(query, phase, workspaces)) == len(workspaces)

    def phases(self, workspaces: list[str]) -> Counter[str]:
        query = "SELECT phase FROM workspaces_workspace WHERE id::text = ANY(%s)"
        return Counter(row["phase"] for row in self.stack.rows(query, workspaces))

    def seconds_until_ready(self, *rounds: list[str]) -> float:
        began = time.monotonic()
        for workspaces in rounds:
            until("all are ready", partial(self.is_in, "ready", workspaces), 240, 0.05)
        return time.monotonic() - began

    def away(self) -> set[str]:
        rows = self.stack.rows("SELECT slug FROM clusters_cluster WHERE unreachable_since IS NOT NULL")
        return {row["slug"] for row in rows}

    def strangers(self) -> list[str]:
        """Objects of workspaces and jobs that stand in another cluster than their pool's."""
        rows = self.stack.rows(
            "SELECT h.id::text, c.slug FROM (SELECT id, pool_id FROM workspaces_workspace"
            " UNION ALL SELECT id, pool_id FROM jobs_job) h"
            " JOIN quotas_pool p ON p.id = h.pool_id JOIN clusters_cluster c ON c.id = p.cluster_id"
        )
        home_of = {row["id"]: row["slug"] for row in rows}
        return [
            f"{kind} {body['metadata']['name']} of {home_of[holder]} is in {slug}"
            for slug, kind, body in self.ours()
            for holder in map(body["metadata"]["labels"].get, ("berth.dev/workspace", "berth.dev/job"))
            if holder and home_of.get(holder, slug) != slug
        ]

    def ours(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        wanted = labels_of(self.stack).items()
        for slug, kube in self.kubes.items():
            for kind, path in KINDS.items():
                status, answer = kube.call("GET", path)
                assert status == 200, answer
                for body in answer["items"]:
                    if wanted <= (body["metadata"].get("labels") or {}).items():
                        yield slug, kind, body

    def pods(self) -> Counter[str]:
        return Counter(slug for slug, kind, body in self.ours() if kind == "pods")

    def metric(self, name: str) -> dict[str, list[float]]:
        """Values of a metric, by cluster."""
        with urllib.request.urlopen(f"{self.stack.address}/metrics", timeout=60) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        found = defaultdict[str, list[float]](list)
        for sample in (sample for family in families for sample in family.samples if sample.name == name):
            found[sample.labels["cluster"]].append(sample.value)
        return dict(found)

    def silent_seconds(self) -> dict[str, float]:
        """Time since each watch of a cluster was heard, of the one that is silent longest."""
        return {cluster: max(told) for cluster, told in self.metric("berth_watch_silent_seconds").items()}

    def doctor(self) -> dict[str, str]:
        """Return what `manage.py doctor` says, by cluster."""
        command = [sys.executable, "manage.py", "doctor"]
        done = subprocess.run(
            command, cwd=REPOSITORY, env=self.stack.environ, capture_output=True, text=True, check=False
        )
        said: dict[str, str] = {}
        for part in re.split(r"^(?=\S)", done.stdout, flags=re.MULTILINE)[1:]:
            cluster, _, findings = part.partition(":\n")
            said[cluster] = findings
        return said

    # --- a cluster's API

    def hang(self, cluster: str) -> None:
        process = self.more[cluster].process
        assert process is not None
        process.send_signal(signal.SIGSTOP)

    def kill(self, cluster: str) -> None:
        process = self.more[cluster].process
        assert process is not None
        process.kill()
        process.wait()


def configuration(more: dict[str, DevCluster]) -> str:
    """Return the file of `manage.py bootstrap` with these clusters, and a pool and a flavor of each."""
    clusters = [
        {"slug": slug, "name": slug.title(), "connection": "kubeconfig", "without_isolation": True}
        | {
            "kubeconfig_path": str(cluster.kubeconfig),
            "home_class": "net-shared",
            "shared_classes": ["net-shared"],
        }
        for slug, cluster in more.items()
    ]
    pools = [
        {"slug": slug, "name": slug.title(), "cluster": slug, "match_product": PRODUCT}
        | {"gpu_product": PRODUCT, "gpu_memory_mib": 81920}
        for slug in more
    ]
    flavors = [
        {"slug": slug, "name": slug.title(), "pool": slug, "gpus": 1, "cpu": 4, "memory_mib": 4096}
        for slug in more
    ]
    quotas = [{"tenant": TENANT, "pool": pool, "nominal_gpus": ROOM} for pool in POOLS.values()]
    made = {
        "clusters": clusters,
        "pools": pools,
        "flavors": flavors,
        "tenants": [{"slug": TENANT, "name": "Host"}],
        "memberships": [{"tenant": TENANT, "user": "alice", "role": "member"}],
        "quotas": quotas,
    }
    return yaml.safe_dump(made)


@contextmanager
def three_clusters(folder: Path) -> Iterator[Site]:
    stack = simulated(folder, NODES)
    more: dict[str, DevCluster] = {}
    stack.start()
    try:
        for slug in (EAST, WEST):
            (folder / slug).mkdir()
            # Comes back at the same address.
            arguments = ("--pods", "played", "--port", str(free_port()))
            more[slug] = DevCluster(folder / slug, *arguments, nodes=NODES)
            more[slug].start()
        (folder / "berth.yaml").write_text(configuration(more))
        stack.manage("bootstrap", str(folder / "berth.yaml"))
        query = "SELECT count(*) = 6 AS all FROM clusters_node WHERE ready"
        until("the nodes of all are known", lambda: stack.rows(query)[0]["all"], 120)
        yield Site(stack, more)
    finally:
        for cluster in more.values():
            if cluster.process is not None and cluster.process.poll() is None:
                cluster.process.kill()
                cluster.process.wait()
        stack.stop()


def test_a_cluster_goes_away_and_comes_back_and_two_others_go_on(tmp_path: Path, found: Found) -> None:
    with three_clusters(tmp_path) as site:
        first = site.launch_round("first", HOME, EAST, WEST)
        site.seconds_until_ready(*first.values())
        assert site.pods() == dict.fromkeys(POOLS, EACH)
        usual = site.seconds_until_ready(*site.launch_round("usual", HOME, WEST).values())

        # It hangs: calls run into their timeouts, which holds up more than a refusal would.
        site.hang(EAST)
        stopped, *going_on = first[EAST]
        site.person.ask("POST", f"workspaces/{stopped}/stop/")
        lost = site.launch_round("lost", EAST)[EAST]
        hung = site.seconds_until_ready(*site.launch_round("hung", HOME, WEST).values())
        assert hung < 3 * usual + 5, (
            f"{hung:.1f} s beside {usual:.1f} s: calls of the one that hangs take up to 30 s"
        )
        until("the cluster counts as away", lambda: site.away() == {EAST}, 120)

        # It is gone: what runs there counts as running, and what was asked for waits for it.
        site.kill(EAST)
        assert site.phases(going_on) == {"ready": EACH - 1}
        assert not {"ready", "failed"} & site.phases(lost).keys()
        assert site.phases([stopped]) != {"stopped": 1}
        said = site.doctor()
        assert said.keys() == POOLS.keys()
        assert (
            len(said[EAST].splitlines()) < 5 < min(len(said[HOME].splitlines()), len(said[WEST].splitlines()))
        )
        assert {
            cluster: sum(nodes) for cluster, nodes in site.metric("berth_nodes").items()
        } == dict.fromkeys(POOLS, 2)
        free = {pool["slug"]: pool["gpus"]["free"] for pool in site.person.ask("GET", "pools/")["results"]}
        # What is to be stopped where nobody can see its end still holds its GPU.
        assert free == free | {"a100": ROOM - 3 * EACH, "west": ROOM - 3 * EACH, "east": ROOM - 2 * EACH}

        # It comes back, and all that was asked for meanwhile is done there.
        began = time.monotonic()
        assert site.silent_seconds().keys() == POOLS.keys()
        site.more[EAST].start()
        until("the cluster is back", lambda: not site.away(), 120)
        site.seconds_until_ready(lost, going_on)
        until("it is stopped", lambda: site.is_in("stopped", [stopped]), 120)
        until("all is heard again", lambda: site.silent_seconds()[EAST] < time.monotonic() - began, 120)
        assert site.pods() == {HOME: 3 * EACH, EAST: 2 * EACH - 1, WEST: 3 * EACH}
        assert site.strangers() == []
        connections = site.stack.rows(CONNECTIONS)[0]["count"]
        assert connections < MOST_CONNECTIONS
        found(
            "one of three clusters hangs, is killed, comes back",
            f"others: {2 * EACH} ready in {hung:.1f} s (before: {usual:.1f} s); {connections} connections",
        )
