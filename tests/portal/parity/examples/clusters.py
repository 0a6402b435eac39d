"""Examples of what admins do with clusters and their nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from clusters.models import Cluster, Node, UnknownCause
from clusters.unknown_causes import count
from monitoring.models import AgentState, IsolationProof, Trouble, Validation
from tests.cast import NETWORKS
from tests.portal.parity.book import example
from tests.portal.parity.scene import Scene

NODE = "gpu-1"


@example(
    "GET clusters/<slug:cluster>/doctor/",
    "clusters.cluster test_connection",
    "clusters.cluster clusters_cluster_test",
    "clusters.cluster clusters_cluster_doctor",
    on_a_cluster=True,
)
def an_examination(scene: Scene) -> None:
    found = scene.admin.list("clusters/main/doctor/")
    assert {"level": "ok", "check": "connection"}.items() <= found[0].items()
    assert {"rights", "nodes", "storage"} <= {one["check"] for one in found}


@example("POST clusters/<slug:cluster>/prove/", "clusters.cluster clusters_cluster_prove")
def a_proof_that_tenants_are_kept_apart(scene: Scene) -> None:
    scene.admin.api("POST clusters/main/prove/")
    assert IsolationProof.objects.get().cluster == scene.cast.cluster


@example(
    "POST admin-actions/clusters.cluster/run_without_isolation/", "clusters.cluster run_without_isolation"
)
def a_cluster_runs_without_isolation(scene: Scene) -> None:
    Cluster.objects.update(**{name: [] for name in NETWORKS})
    scene.admin.acts("clusters.cluster", "run_without_isolation", scene.cast.cluster.pk)
    assert scene.admin.get("clusters/main/")["without_isolation"]


@example("POST admin-actions/clusters.cluster/require_isolation/", "clusters.cluster require_isolation")
def a_cluster_requires_isolation(scene: Scene) -> None:
    Cluster.objects.update(**{name: [] for name in NETWORKS}, without_isolation=True)
    scene.admin.acts("clusters.cluster", "require_isolation", scene.cast.cluster.pk)
    assert not scene.admin.get("clusters/main/")["without_isolation"]


@example("POST nodes/<str:name>/cordon/", "clusters.node cordon", on_a_cluster=True)
def a_node_is_cordoned(scene: Scene) -> None:
    scene.admin.api(f"POST nodes/{NODE}/cordon/", {"why": "a fan is loud"})
    assert is_cordoned(scene)
    scene.admin.api(f"POST nodes/{NODE}/uncordon/")  # other tests use it, too


@example("POST nodes/<str:name>/uncordon/", "clusters.node uncordon", on_a_cluster=True)
def a_node_is_uncordoned(scene: Scene) -> None:
    scene.admin.api(f"POST nodes/{NODE}/cordon/")
    scene.admin.api(f"POST nodes/{NODE}/uncordon/")
    assert not is_cordoned(scene)


@example(
    "POST nodes/<str:name>/drain/",
    "clusters.node drain_10",
    "clusters.node drain_60",
    "clusters.node drain_1440",
    on_a_cluster=True,
)
def a_node_is_drained(scene: Scene) -> None:
    scene.admin.api(f"POST nodes/{NODE}/drain/", {"minutes": 60})
    assert is_cordoned(scene)
    assert Trouble.objects.get(code="node_drains", ended_at=None).node == NODE
    scene.admin.api(f"POST nodes/{NODE}/uncordon/")


def is_cordoned(scene: Scene) -> bool:
    return bool(scene.cluster.get("Node", None, NODE)["spec"].get("unschedulable"))


@example("POST admin-actions/clusters.node/forget_agent/", "clusters.node forget_agent")
def a_silent_agent_is_forgotten(scene: Scene) -> None:
    long_ago = timezone.now() - timedelta(days=1)
    AgentState.objects.create(
        cluster=scene.cast.cluster, node=NODE, agent="a", taken_at=long_ago, seen_at=long_ago
    )
    scene.admin.acts("clusters.node", "forget_agent", node().pk)
    assert not AgentState.objects.exists()


@example("POST admin-actions/clusters.node/test_gpus/", "clusters.node test_gpus")
@example("POST admin-actions/<str:of>/<str:action>/", "monitoring.validation monitoring_validation_begin")
def the_gpus_of_a_node_are_tested(scene: Scene) -> None:
    Cluster.objects.update(validation_image="tests/vectoradd:1")
    scene.admin.acts("clusters.node", "test_gpus", node().pk)
    assert Validation.objects.get().node == NODE


@example("POST admin-actions/monitoring.validation/overrule/", "monitoring.validation overrule")
def a_failed_test_is_overruled(scene: Scene) -> None:
    of: dict[str, Any] = {"cluster": scene.cast.cluster, "pool": scene.cast.pool, "node": NODE, "image": "i"}
    row = Validation.objects.create(**of, outcome="failed", code="validation_hangs", ended_at=timezone.now())
    scene.admin.acts("monitoring.validation", "overrule", row.pk)
    row.refresh_from_db()
    assert row.overruled_by == scene.cast.admin.user


def node() -> Node:
    return Node.objects.get(name=NODE)


def unexplained(scene: Scene) -> dict[str, Any]:
    count("volume", "the flux capacitor hums", scene.cast.cluster.pk)
    [told] = scene.admin.list("unexplained-messages/")
    assert (told["text"], told["cluster"]) == ("the flux capacitor hums", "main")
    return told


@example("POST unexplained-messages/<slug:digest>/", "clusters.unknowncause dismiss")
def a_message_is_dismissed(scene: Scene) -> None:
    answer = scene.admin.api(f"POST unexplained-messages/{unexplained(scene)['id']}/")
    assert answer["dismissed_at"] and UnknownCause.objects.get().dismissed_at


@example("DELETE unexplained-messages/<slug:digest>/", "clusters.unknowncause delete")
def a_message_is_deleted(scene: Scene) -> None:
    scene.admin.api(f"DELETE unexplained-messages/{unexplained(scene)['id']}/")
    assert not UnknownCause.objects.exists()
