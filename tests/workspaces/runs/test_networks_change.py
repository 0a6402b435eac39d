"""Networks that change under running workspaces: the policy of each tenant follows."""

from __future__ import annotations

import pytest

from clusters import signals
from clusters.models import Cluster
from quotas import admission
from tests.cast import Cast
from tests.shared.looking import PlayedMirror
from tests.shared.looking import look as look_once
from tests.shared.played_api import PlayedApi
from tests.workspaces.specs import spec
from workspaces import enqueue
from workspaces.launch.launch import launch
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

PUBLIC = "203.0.113.9/32"


@pytest.fixture
def api() -> PlayedApi:
    return PlayedApi()


def look(api: PlayedApi, *rows: Workspace) -> None:
    for _ in range(10):
        for row in rows:
            admission.admit(row.pool_id)
            enqueue.reconcile([row.pk])
            look_once(row.pk, PlayedMirror(api))
            row.refresh_from_db()
        api.settle()


def look_at_marked(api: PlayedApi) -> None:
    for pk in Workspace.objects.filter(dirty_since__isnull=False).values_list("pk", flat=True):
        look_once(pk, PlayedMirror(api))


def denied(api: PlayedApi) -> dict[str, bool]:
    """Return by namespace if its policy denies the public address of the new node."""
    return {
        body["metadata"]["namespace"]: any(
            PUBLIC in peer.get("ipBlock", {}).get("except", ())
            for rule in body["spec"]["egress"]
            for peer in rule["to"]
        )
        for body in api.of("NetworkPolicy")
    }


@pytest.mark.slow
def test_the_policies_of_all_tenants_follow(cast: Cast, api: PlayedApi) -> None:
    rows = [
        launch(cast.alice, spec()),
        launch(cast.bob, spec(name="b")),
        launch(cast.carol, spec(tenant="second")),
    ]
    look(api, *rows)
    assert {row.phase for row in rows} == {"ready"}
    assert denied(api) == {"berth-demo": False, "berth-second": False}
    Workspace.objects.update(dirty_since=None)
    Cluster.objects.update(found_networks={"nodes": [PUBLIC]})
    signals.networks_changed.send(sender=Cluster, cluster=cast.cluster)
    marked = Workspace.objects.filter(dirty_since__isnull=False)
    assert sorted(marked.values_list("tenant__slug", flat=True)) == ["demo", "second"]  # one of each tenant
    look_at_marked(api)
    assert denied(api) == {"berth-demo": True, "berth-second": True}
