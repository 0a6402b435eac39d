"""A run starts where its disk is, and holds no GPU elsewhere while it waits for that node."""

from __future__ import annotations

from uuid import uuid4

import pytest

from accounts.access import Actor
from accounts.models import Tenant
from clusters.api import Api
from clusters.models import Node
from quotas import admission
from quotas.models import Claim
from quotas.sharing import Portion
from tests.cast import Cast
from tests.shared.driving import claim_of, drive, in_phase, launched
from workspaces.runs import lifecycle

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


def test_a_start_waits_for_the_node_of_its_disk_and_another_person_gets_the_free_gpu(
    house: Cast, api: Api
) -> None:
    house.cluster.disk_class = "local-fast"
    house.cluster.save()
    for node in Node.objects.all():
        node.labels["kubernetes.io/hostname"] = node.name
        node.save()
    workspace = drive(launched(house, disk_mib=1024), in_phase("ready"))
    here = workspace.node
    lifecycle.stop(house.alice, workspace)
    drive(workspace, in_phase("stopped"))

    others = fill(here, house)
    lifecycle.start(house.alice, workspace)
    admission.admit(house.pool.pk)
    workspace.refresh_from_db()
    waiting = claim_of(workspace)
    assert (waiting.state, waiting.reason_code) == (Claim.State.WAITING, "volume_node_full")
    assert waiting.reason_data["on"] == [here]
    assert request_of(house.bob, house.demo, 1, house).node not in ("", here)

    admission.release(others.pk, "stopped")
    assert drive(workspace, in_phase("ready")).node == here
