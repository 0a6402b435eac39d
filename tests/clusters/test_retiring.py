"""Berth is taken out of use: pods can end without it, PVCs are listed, and nothing is deleted."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from clusters.api import Api
from clusters.labels import INSTANCE, MANAGED_BY, MANAGER
from clusters.models import Cluster, Installation
from clusters.pods.ends import FINALIZER
from vitals.models import Process

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(kubeconfig: str) -> Cluster:
    return Cluster.objects.create(
        slug="main", name="Main", connection="kubeconfig", kubeconfig_path=kubeconfig
    )


def ours(kind: str, version: str, namespace: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    labels = {MANAGED_BY: MANAGER, INSTANCE: str(Installation.current_id())}
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


@pytest.fixture
def held(api: Api, namespace: str) -> dict[str, Any]:
    """A pod that only Berth would let go, and a PVC."""
    container = {"name": "main", "image": "devcluster.local/simulated-vectoradd:jupyter"}
    pod = ours("Pod", "v1", namespace, "held", {"containers": [container]})
    pod["metadata"]["finalizers"] = [FINALIZER]
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    api.create(ours("PersistentVolumeClaim", "v1", namespace, "home", storage))
    return api.create(pod)


def retire(*arguments: str) -> str:
    out = StringIO()
    call_command("retire", *arguments, stdout=out)
    return out.getvalue()


def finalizers(api: Api, namespace: str) -> list[str]:
    return ((api.get("Pod", namespace, "held") or {})["metadata"]).get("finalizers") or []


def test_without_apply_it_only_says_what_is_there(
    cluster: Cluster, api: Api, held: Any, namespace: str
) -> None:
    assert f"{namespace}/home 1Gi" in retire()
    assert finalizers(api, namespace) == [FINALIZER]


def test_a_pod_can_end_without_berth_and_its_files_stay(
    cluster: Cluster, api: Api, held: Any, namespace: str
) -> None:
    assert f"{INSTANCE}={Installation.current_id()}" in retire("--apply")
    assert finalizers(api, namespace) == []
    assert api.get("PersistentVolumeClaim", namespace, "home") is not None


def test_a_cluster_that_cannot_be_asked_does_not_hold_up_the_others(
    cluster: Cluster, api: Api, held: Any, namespace: str
) -> None:
    Cluster.objects.create(slug="away", name="Away", connection="kubeconfig", kubeconfig_path="/absent")
    with pytest.raises(CommandError, match=r"\Aaway: "):
        retire("--apply")
    assert finalizers(api, namespace) == []


def test_it_refuses_while_a_worker_could_make_new_pods(
    cluster: Cluster, api: Api, held: Any, namespace: str
) -> None:
    Process.objects.create(part="worker", host="here", pid=1, seen_at=timezone.now())
    with pytest.raises(CommandError, match="worker"):
        retire("--apply")
    assert finalizers(api, namespace) == [FINALIZER]
