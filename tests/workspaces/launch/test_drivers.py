"""The driver of old nodes: a folder of the node, read-only, although Pod Security forbids a hostPath."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from accounts.models import Tenant
from clusters.api import Api
from quotas.models import Pool
from tests.cast import Cast
from tests.shared.driving import drive, in_phase, launched
from tests.workspaces.builders import INSTANCE, wanted, workspace
from workloads.pods import drivers, parts
from workspaces.cluster import pod
from workspaces.runs import lifecycle

PATH = "/var/lib/nvidia-docker/driver"


def pool_with_driver(path: str = PATH, **values: Any) -> Pool:
    return Pool(slug="old", name="Old", driver_path=path, **values)


def test_volume_and_claim_are_made_for_each_other_and_for_one_tenant() -> None:
    pool, tenant = pool_with_driver(), Tenant(slug="demo", name="Demo")
    volume, claim = drivers.objects(pool, tenant, INSTANCE)
    assert volume["spec"]["hostPath"] == {"path": PATH, "type": "Directory"}
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert volume["spec"]["accessModes"] == claim["spec"]["accessModes"] == ["ReadOnlyMany"]
    assert volume["spec"]["claimRef"] == {"namespace": "berth-demo", "name": claim["metadata"]["name"]}
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert claim["spec"]["storageClassName"] == ""  # else a class makes another volume
    for body in (volume, claim):
        assert body["metadata"]["labels"]["berth.dev/instance"] == str(INSTANCE)


def test_another_tenant_pool_or_path_has_another_volume() -> None:
    pool = pool_with_driver()
    other_path, other_pool = pool_with_driver("/opt/nvidia", id=pool.id), pool_with_driver(id=uuid4())
    names = {
        drivers.objects(one, Tenant(slug=slug), INSTANCE)[0]["metadata"]["name"]
        for one in (pool, other_path, other_pool)
        for slug in ("demo", "second")
    }
    assert len(names) == 6


def test_it_is_mounted_read_only_where_gpus_are_asked_for() -> None:
    row = workspace()
    row.pool.driver_path = PATH
    (mount,) = [m for m in parts.mounts(wanted(row)) if m["name"] == "driver"]
    (volume,) = [v for v in parts.volumes(wanted(row), "start") if v["name"] == "driver"]
    assert mount == {"name": "driver", "mountPath": "/usr/local/nvidia", "readOnly": True}
    assert volume["persistentVolumeClaim"] == {"claimName": drivers.claim_name(row.pool), "readOnly": True}
    assert {"name": "BERTH_DRIVER", "value": "/usr/local/nvidia"} in pod.environment(wanted(row))


@pytest.mark.parametrize("changes", [{"units": 0}, {}])
def test_nothing_is_mounted_without_gpus_or_without_a_path(changes: dict[str, int]) -> None:
    row = workspace(**changes)
    row.pool.driver_path = PATH if changes else ""
    assert "driver" not in str(pod.spec(wanted(row), "start"))
    assert "BERTH_DRIVER" not in str(pod.spec(wanted(row), "start"))


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_workspace_on_an_old_node_gets_it_under_pod_security_restricted(house: Cast, api: Api) -> None:
    house.pool.driver_path = PATH
    house.pool.save()
    workspace = drive(launched(house), in_phase("ready"))
    name, namespace = drivers.claim_name(house.pool), house.demo.namespace
    claim = api.get("PersistentVolumeClaim", namespace, name)
    assert claim and claim["status"]["phase"] == "Bound"
    # The PVC stays after a stop. Deleted by hand, it is made again on the same volume.
    lifecycle.stop(house.alice, workspace)
    drive(workspace, in_phase("stopped"))
    assert api.get("PersistentVolumeClaim", namespace, name) is not None
    api.delete("PersistentVolumeClaim", namespace, name)
    lifecycle.start(house.alice, workspace)
    drive(workspace, in_phase("ready"))
    again = api.get("PersistentVolumeClaim", namespace, name)
    assert again and again["spec"]["volumeName"] == claim["spec"]["volumeName"]
    assert again["metadata"]["uid"] != claim["metadata"]["uid"]
