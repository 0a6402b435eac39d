"""A run starts where its disk is, and holds no GPU elsewhere while it waits for that node."""

from __future__ import annotations

from uuid import uuid4

import pytest

from accounts.access import Actor
from accounts.errors import Conflict, NotAllowed
from accounts.models import Tenant
from clusters.api import Api
from clusters.models import Node
from quotas import admission
from quotas.models import Claim
from quotas.sharing import Portion
from storage.models import Volume
from storage.mounts import mounting
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.driving import claim_of, drive, in_phase, launched
from workspaces.models import Workspace
from workspaces.runs import lifecycle
from workspaces.runs.changes import Change, change

pytestmark = [pytest.mark.django_db(transaction=True)]


def request_of(actor: Actor, tenant: Tenant, gpus: int, house: Cast) -> Claim:
    claim = admission.request(
        tenant=tenant,
        user=actor.user,
        pool=house.pool,
        portion=Portion(gpus),
        cpu_millicores=1000,
        memory_mib=1024,
        holder_kind=Claim.Holder.JOB,
        holder_id=uuid4(),
    )
    admission.admit(house.pool.pk)
    claim.refresh_from_db()
    return claim


def fill(node: str, house: Cast) -> Claim:
    """Let carol of the second tenant hold all GPUs of a node."""
    Node.objects.exclude(name=node).update(ready=False)
    claim = request_of(house.carol, house.second, 4, house)
    Node.objects.update(ready=True)
    assert claim.node == node
    return claim


def waiting_for_its_disk(house: Cast) -> tuple[Workspace, str]:
    """Return a workspace that waits, as the node of its disk is full, and the name of that node."""
    house.cluster.disk_class = "local-fast"
    house.cluster.save()
    for node in Node.objects.all():
        node.labels["kubernetes.io/hostname"] = node.name
        node.save()
    workspace = drive(launched(house, disk_mib=1024), in_phase("ready"))
    here = workspace.node
    lifecycle.stop(house.alice, workspace)
    drive(workspace, in_phase("stopped"))
    fill(here, house)
    lifecycle.start(house.alice, workspace)
    admission.admit(house.pool.pk)
    workspace.refresh_from_db()
    return workspace, here


@pytest.mark.slow
def test_a_start_waits_for_the_node_of_its_disk_and_another_person_gets_the_free_gpu(
    house: Cast, api: Api
) -> None:
    workspace, here = waiting_for_its_disk(house)
    others = Claim.objects.get(user=house.carol.user)
    waiting = claim_of(workspace)
    assert (waiting.state, waiting.reason_code) == (Claim.State.WAITING, "volume_node_full")
    assert waiting.reason_data["on"] == [here]
    assert request_of(house.bob, house.demo, 1, house).node not in ("", here)

    admission.release(others.pk, "stopped")
    assert drive(workspace, in_phase("ready")).node == here


@pytest.mark.slow
def test_a_workspace_starts_elsewhere_with_a_new_disk_and_its_old_one_stays(house: Cast, api: Api) -> None:
    workspace, here = waiting_for_its_disk(house)
    [mount] = mounting.own(mounting.mounts_of([workspace.pk])[workspace.pk])[:1]
    page = browser(house.alice).get(f"/workspaces/{workspace.pk}/").content.decode()
    assert 'id="new-disk"' in page
    assert mount.volume.name in page
    with pytest.raises(NotAllowed):
        change(house.bob, workspace, Change(new_disk=True))

    answer = browser(house.alice).post(f"/workspaces/{workspace.pk}/instead/", {"new_disk": "true"})
    assert answer.status_code == 302
    admission.admit(house.pool.pk)
    assert drive(workspace, in_phase("ready")).node not in ("", here)
    left = Volume.objects.get(pk=mount.volume_id)
    new = Volume.objects.get(made_for=workspace.pk)
    assert (left.made_for, left.phase, left.bin_until, left.node) == (None, "ready", None, here)
    assert api.get("PersistentVolumeClaim", house.demo.namespace, left.object_name) is not None
    assert (new.requested_mib, new.node) == (left.requested_mib, workspace.node)
    with pytest.raises(Conflict, match="while it is stopped"):
        change(house.alice, workspace, Change(new_disk=True))
