"""Many objects at once: a namespace's use is updated with every change, not counted again for each."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devcluster.api import Api, DeleteOptions, Writer
from devcluster.resources import NAMESPACE, POD, SERVICE, SERVICE_ACCOUNT
from devcluster.rules.quota import Totals
from devcluster.store import Store
from devcluster.testing.cluster import DevCluster, pod, running, stateful_set
from devcluster.testing.many import NODES as FIVE_HUNDRED
from devcluster.testing.many import PODS, SPACE, Many

pytestmark = pytest.mark.slow

WRITER = Writer("test")
SETS = 200


@pytest.fixture
def api(tmp_path: Path) -> Api:
    api = Api(Store(tmp_path / "objects.sqlite"))
    api.create(NAMESPACE, "", {"metadata": {"name": "many"}}, WRITER)
    api.create(SERVICE_ACCOUNT, "many", {"metadata": {"name": "default"}}, WRITER)
    return api


def test_usage_that_is_kept_up_is_what_a_count_gives(api: Api) -> None:
    kept = api.totals.of("many")
    for name in ("ends", "goes", "stays"):
        api.create(POD, "many", pod(name), WRITER)
    spec = {"type": "LoadBalancer", "ports": [{"port": 22}]}
    api.create(SERVICE, "many", {"metadata": {"name": "s"}, "spec": spec}, WRITER)
    assert (kept["pods"], kept["requests.cpu"], kept["services.nodeports"]) == (3000, 300, 1000)
    api.set_status(POD, api.get(POD, "many", "ends"), {"phase": "Succeeded"})
    api.delete(POD, "many", "goes", DeleteOptions())
    api.update(SERVICE, "many", "s", lambda o: o | {"spec": o["spec"] | {"type": "ClusterIP"}}, WRITER)
    assert (kept["pods"], kept["requests.cpu"], kept["services.nodeports"]) == (1000, 100, 0)
    assert +kept == +Totals(api.store).of("many")


def test_a_namespace_made_again_begins_with_nothing_used(api: Api) -> None:
    api.create(POD, "many", pod("p"), WRITER)
    assert api.totals.of("many")["pods"] == 1000
    api.store.remove(POD, api.get(POD, "many", "p"))
    api.store.remove(NAMESPACE, api.get(NAMESPACE, "", "many"))
    assert api.totals.of("many")["pods"] == 0


@pytest.mark.slow
def test_hundreds_of_sets_at_once_under_a_quota_settle_in_seconds(cluster: DevCluster) -> None:
    space = cluster.fresh()
    hard = {"pods": str(SETS), "requests.cpu": "1000"}
    cluster.create(f"{space}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    sets = f"/apis/apps/v1/namespaces/{space.rpartition('/')[2]}/statefulsets"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: cluster.create(sets, stateful_set(f"ws-{n}")), range(SETS)))
    ready = {"readyReplicas": 1}
    everything = lambda found: all(ready.items() <= o["status"].items() for o in found["items"])  # noqa: E731
    cluster.until(sets, everything, seconds=60)
    status = cluster.until(f"{space}/resourcequotas/q", lambda o: o["status"]["used"]["pods"] == str(SETS))
    assert status["status"]["used"]["requests.cpu"] == "20"
    code, told = cluster.call("POST", f"{space}/pods", pod("one-more"))
    assert (code, told["reason"]) == (403, "Forbidden")
    assert f"used: pods={SETS}, limited: pods={SETS}" in told["message"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_five_thousand_pods_on_five_hundred_nodes_get_ready_in_bounded_memory(folder: Path) -> None:
    async def start(cluster: DevCluster) -> float:
        async with Many(cluster) as many:
            await many.start(5000)
            found = await many.call("GET", f"{PODS}?limit=1")
            assert found["metadata"]["remainingItemCount"] == 4999
            return many.memory_mib()

    for cluster in running(folder, "--pods", "played", nodes=FIVE_HUNDRED):
        cluster.namespace(SPACE)
        assert asyncio.run(start(cluster)) < 1500


def test_a_deployment_of_hundreds_comes_and_goes_in_seconds(cluster: DevCluster) -> None:
    space = cluster.fresh()
    path = space.replace("/api/v1", "/apis/apps/v1") + "/deployments"
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("web")["spec"]}
    spec = {"replicas": 100, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    cluster.create(path, {"metadata": {"name": "web"}, "spec": spec})
    cluster.until(f"{path}/web", lambda o: o["status"].get("availableReplicas") == 100, seconds=60)
    cluster.call("DELETE", f"{path}/web", {"propagationPolicy": "Foreground"})
    cluster.until(f"{path}/web", lambda o: o.get("code") == 404, seconds=60)
    assert cluster.get(f"{space}/pods")["items"] == []
