"""Two clusters in one installation: a launch goes to its pool's cluster, and neither cluster delays the other."""

from __future__ import annotations

import pytest
from django.utils import timezone

from accounts.models import Tenant
from clusters.models import Cluster, Node
from quotas import admission
from quotas.models import Flavor, Pool, Quota
from quotas.queries import pools_for
from tests.cast import GIB, NETWORKS, PRODUCT, Cast
from tests.shared.looking import PlayedMirror, look
from tests.shared.played_api import PlayedApi
from tests.workspaces.specs import spec
from workloads.sizes.sizing import SizeAsked
from workspaces import enqueue
from workspaces.launch.launch import launch
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


class House:
    """The cast's cluster, and another with a node of the same name and the same GPUs."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.second = Cluster.objects.create(
            slug="second", name="Second", connection="kubeconfig", **NETWORKS
        )
        Node.objects.create(
            cluster=self.second,
            name="gpu-1",
            ready=True,
            labels={"nvidia.com/gpu.product": PRODUCT},
            allocatable={"cpu": 64_000, "memory": 512 * GIB, "pods": 110, "nvidia.com/gpu": 1},
        )
        self.pool = Pool.objects.create(slug="far", name="Far", cluster=self.second, match_product=PRODUCT)
        Flavor.objects.create(
            slug="far-1", name="Far", pool=self.pool, units=1, cpu_millicores=1000, memory_mib=1024
        )
        for tenant in Tenant.objects.all():
            Quota.objects.create(tenant=tenant, pool=self.pool, nominal_gpus=4)
        self.apis = {cast.cluster.pk: PlayedApi(), self.second.pk: PlayedApi()}
        self.mirrors = {pk: PlayedMirror(api) for pk, api in self.apis.items()}

    def launch(self, name: str, flavor: str) -> Workspace:
        return launch(self.cast.alice, spec(name=name, size=SizeAsked(flavor=flavor)))

    def look(self, *rows: Workspace) -> None:
        """Look until all are ready or waiting, ten times at most."""
        for _ in range(10):
            for row in rows:
                admission.admit(row.pool_id)
                enqueue.reconcile([row.pk])
                look(row.pk, self.mirrors[row.pool.cluster_id])
                row.refresh_from_db()
            if all(row.phase in ("ready", "waiting") for row in rows):
                return
            for api in self.apis.values():
                api.settle()

    def pods_in(self, cluster: Cluster) -> list[str]:
        return [body["metadata"]["name"] for body in self.apis[cluster.pk].of("Pod")]


@pytest.fixture
def house(cast: Cast) -> House:
    return House(cast)


def test_each_launch_lands_in_the_cluster_of_its_pool(house: House) -> None:
    near, far = house.launch("near", "a100-1"), house.launch("far", "far-1")
    house.look(near, far)
    assert (near.phase, far.phase) == ("ready", "ready")
    assert house.pods_in(house.cast.cluster) == [f"ws-{near.pk}"]
    assert house.pods_in(house.second) == [f"ws-{far.pk}"]


def test_nodes_of_one_name_in_two_clusters_are_two_nodes(house: House) -> None:
    first, waits = house.launch("first", "far-1"), house.launch("waits", "far-1")
    near = house.launch("near", "a100-1")
    house.look(first, waits, near)
    assert (first.phase, waits.phase, near.phase) == ("ready", "waiting", "ready")
    free = {pool["slug"]: pool["gpus"]["free"] for pool in pools_for(house.cast.alice)}
    assert free == {"a100": 7, "far": 0}


@pytest.mark.slow
def test_a_cluster_that_is_away_does_not_delay_the_other(house: House) -> None:
    def no_answer() -> None:
        raise AssertionError("it was called")

    house.apis[house.second.pk].before_call = no_answer
    Cluster.objects.filter(pk=house.second.pk).update(unreachable_since=timezone.now())
    far, near = house.launch("far", "far-1"), house.launch("near", "a100-1")
    house.look(far, near)
    assert (near.phase, far.phase) == ("ready", "starting")
    # Accepted launches are not lost.
    house.apis[house.second.pk].before_call = lambda: None
    Cluster.objects.update(unreachable_since=None)
    house.look(far)
    assert far.phase == "ready"
