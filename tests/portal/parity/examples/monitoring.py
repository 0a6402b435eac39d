"""Examples of alerts and their routes, post-mortems, agents' tokens, troubles and drift."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db.models import F
from django.utils import timezone

from clusters.isolation import granting
from clusters.models import Gpu, Installation
from monitoring.drift import looks
from monitoring.health import judging
from monitoring.models import (
    AgentState,
    Alert,
    AlertDelivery,
    AlertRoute,
    Finding,
    Look,
    Trouble,
    XidEvent,
)
from tests.portal.parity.bodies import ROUTE
from tests.portal.parity.book import example
from tests.portal.parity.scene import Scene
from tests.shared.post_mortems.rows import make_post_mortem
from tests.shared.workspace_rows import make_workspace
from vitals.models import Process
from workspaces.models import Phase

OF_ROUTE = "alerts/routes/<uuid:id>/"
OF_ALERT = "alerts/<uuid:id>/<str:verb>/"


@example("POST alerts/<uuid:id>/acknowledge/", OF_ALERT)
def an_alert_is_acknowledged(scene: Scene) -> None:
    there = alert(scene)
    scene.alice.api(f"POST {there}acknowledge/")
    assert scene.alice.get(there)["acknowledged_by"] == "alice"


@example("POST alerts/<uuid:id>/silence/", OF_ALERT)
def an_alert_is_silenced(scene: Scene) -> None:
    there = alert(scene)
    scene.alice.api(f"POST {there}silence/", {"minutes": 60})
    assert scene.alice.get(there)["silenced_until"]


@example("POST alerts/<uuid:id>/resolve/", OF_ALERT)
def an_alert_is_resolved(scene: Scene) -> None:
    there = alert(scene)
    scene.alice.api(f"POST {there}resolve/")
    assert scene.alice.get(there)["resolved_by"] == "alice"


def alert(scene: Scene) -> str:
    """Make an alert of demo. Return its address."""
    now = timezone.now()
    times = {"since": now, "last_at": now, "round_at": now}
    of: dict[str, Any] = {"group": "x", "code": "volume_nearly_full", "data": {"percent": 95}, "severity": 2}
    return f"alerts/{Alert.objects.create(tenant=scene.cast.demo, **of, **times).pk}/"


@example("POST alert-routes/", "alerts/routes/")
def a_route(scene: Scene) -> None:
    route(scene)
    assert [one["host"] for one in scene.alice.list("alert-routes/")] == ["hook.example.org"]


@example("PATCH alert-routes/<uuid:id>/", OF_ROUTE)
def a_route_is_turned_off(scene: Scene) -> None:
    scene.alice.api(f"PATCH {route(scene)}", {"enabled": False})
    assert [one["enabled"] for one in scene.alice.list("alert-routes/")] == [False]


@example("DELETE alert-routes/<uuid:id>/", f"{OF_ROUTE}<str:verb>/")
def a_route_is_deleted(scene: Scene) -> None:
    scene.alice.api(f"DELETE {route(scene)}")
    assert scene.alice.list("alert-routes/") == []


@example("POST alert-routes/<uuid:id>/test/", f"{OF_ROUTE}<str:verb>/", "monitoring.alertroute send_test")
def a_test_by_a_route(scene: Scene) -> None:
    there = route(scene)
    scene.alice.api(f"POST {there}test/")
    assert [one["occasion"] for one in scene.alice.list(f"{there}deliveries/")] == ["test"]


def route(scene: Scene) -> str:
    """Make a route of demo. Return its address."""
    made = scene.alice.api("POST alert-routes/", ROUTE)
    return f"alert-routes/{made['id']}/"


@example("POST admin-actions/monitoring.alertdelivery/send_again/", "monitoring.alertdelivery send_again")
def a_message_is_sent_again(scene: Scene) -> None:
    to = AlertRoute.objects.create(
        name="hook", way="webhook", tenant=scene.cast.demo, address="x", host="x.test"
    )
    row = AlertDelivery.objects.create(route=to, occasion="test", state="given_up", attempts=9)
    scene.admin.acts("monitoring.alertdelivery", "send_again", row.pk)
    row.refresh_from_db()
    assert row.state == AlertDelivery.State.WAITING


@example("POST post-mortems/<uuid:id>/notes/", "post-mortems/<uuid:id>/")
def a_note_on_what_went_wrong(scene: Scene) -> None:
    record = make_post_mortem(make_workspace(scene.cast, scene.cast.alice, Phase.FAILED))
    there = f"post-mortems/{record.pk}/"
    scene.alice.api(f"POST {there}notes/", {"text": "It was the cable."})
    assert [one["text"] for one in scene.alice.get(there)["notes"]] == ["It was the cable."]


@example("POST agent-tokens/", "monitoring.agenttoken add")
def a_token_of_an_agent(scene: Scene) -> None:
    scene.admin.api("POST agent-tokens/", {"cluster": "main", "name": "node"})
    assert [one["name"] for one in scene.admin.list("agent-tokens/")] == ["node"]


@example("DELETE agent-tokens/<uuid:id>/", "monitoring.agenttoken revoke")
def a_token_of_an_agent_is_revoked(scene: Scene) -> None:
    made = scene.admin.api("POST agent-tokens/", {"cluster": "main", "name": "node"})
    scene.admin.api(f"DELETE agent-tokens/{made['id']}/")
    [token] = scene.admin.list("agent-tokens/")
    assert token["revoked_at"]


@example("POST admin-actions/monitoring.trouble/trust/", "monitoring.trouble trust")
def a_gpu_is_used_again(scene: Scene) -> None:
    now = timezone.now()
    of: dict[str, Any] = {"cluster": scene.cast.cluster, "node": "gpu-1"}
    Process.objects.create(part="web", host="h", pid=1, seen_at=now, since=now - timedelta(days=1))
    AgentState.objects.create(**of, agent="a", taken_at=now, seen_at=now)
    gpu = Gpu.objects.create(
        **of, index=0, uuid="GPU-0", seen_at=now, sample={"uuid": "GPU-0", "state": "ok"}
    )
    XidEvent.objects.create(**of, gpu="GPU-0", xid=79, at=now)
    judging.judge(scene.cast.cluster.pk, "gpu-1")
    gpu.refresh_from_db()
    assert gpu.out_code
    scene.admin.acts("monitoring.trouble", "trust", Trouble.objects.get().pk)
    gpu.refresh_from_db()
    assert gpu.out_code == ""


@example("POST drift/look/", "monitoring.finding monitoring_finding_look")
def a_look_for_drift(scene: Scene) -> None:
    scene.admin.api("POST drift/look/")
    assert Look.objects.get().wanted_at


@example("POST drift/<uuid:id>/adopt/", "monitoring.finding accept", on_a_cluster=True)
def a_change_is_accepted(scene: Scene) -> None:
    bare_namespace(scene)
    there = finding(scene, "Namespace")
    scene.admin.api(f"POST {there}adopt/")
    assert [one["kind"] for one in scene.admin.list("drift/?state=accepted")] == ["Namespace"]


@example("POST drift/<uuid:id>/recreate/", "monitoring.finding recreate", on_a_cluster=True)
def what_is_missing_is_made_anew(scene: Scene) -> None:
    bare_namespace(scene)
    scene.admin.api(f"POST {finding(scene, 'NetworkPolicy')}recreate/")
    assert scene.cluster.get("NetworkPolicy", scene.cast.demo.namespace, "berth")


@example("POST drift/<uuid:id>/delete/", "monitoring.finding delete_object", on_a_cluster=True)
def what_nobody_wants_is_deleted(scene: Scene) -> None:
    namespace = bare_namespace(scene)
    scene.cluster.apply(planted("Secret", "left", namespace))
    scene.admin.api(f"POST {finding(scene, 'Secret')}delete/")
    assert scene.cluster.get("Secret", namespace, "left") is None


@example("POST drift/<uuid:id>/delete/", "monitoring.finding delete_data", on_a_cluster=True)
def data_that_nobody_wants_is_deleted(scene: Scene) -> None:
    namespace = bare_namespace(scene)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}}
    scene.cluster.apply(planted("PersistentVolumeClaim", "left", namespace, spec=spec))
    scene.admin.api(f"POST {finding(scene, 'PersistentVolumeClaim')}delete/", {"with_data": True})
    assert scene.cluster.get("PersistentVolumeClaim", namespace, "left") is None


def bare_namespace(scene: Scene) -> str:
    """Make demo's namespace as if by hand: without what Berth would put there. Return its name."""
    namespace = scene.cast.demo.namespace
    scene.cluster.apply(planted("Namespace", namespace))
    scene.cluster.apply(granting.role_binding(scene.cast.cluster, namespace, {}))
    return namespace


def planted(kind: str, name: str, namespace: str = "", **body: Any) -> dict[str, Any]:
    """Return an object with the labels of this Berth; in a namespace, those of a workspace that is not known."""
    labels = {"app.kubernetes.io/managed-by": "berth", "berth.dev/instance": str(Installation.current_id())}
    metadata: dict[str, Any] = {"name": name, "labels": labels}
    if namespace:
        metadata["namespace"] = namespace
        labels["berth.dev/workspace"] = str(uuid4())
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **body}


def finding(scene: Scene, kind: str) -> str:
    """Return the address of the finding about demo's object of this kind, which has been there for two minutes."""
    looks.look(scene.cast.cluster.pk)
    Finding.objects.update(first_seen_at=F("first_seen_at") - timedelta(minutes=2))
    looks.look(scene.cast.cluster.pk)
    row = Finding.objects.open().filter(kind=kind, tenant_slug=scene.cast.demo.slug).first()
    assert row is not None, list(Finding.objects.values_list("what", "kind", "name"))
    return f"drift/{row.pk}/"
