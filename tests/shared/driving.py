"""Runs against a real HTTP Kubernetes API. Nothing works in the background: `drive` acts as worker and watcher."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from clusters.api import Api
from clusters.connections import connect
from clusters.models import Cluster
from quotas import admission
from quotas.models import Claim, Flavor, Pool
from tests.cast import Cast
from tests.shared.looking import look
from workloads.models import Image
from workloads.sizes.sizing import SizeAsked
from workspaces import enqueue
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Workspace

ENOUGH_SECONDS = 60


def api_of_admin(kubeconfig: Path) -> Api:
    return connect(Cluster(slug="admin", connection="kubeconfig", kubeconfig_path=str(kubeconfig)))


def move_to_a_real_node(cast: Cast) -> None:
    """Use $BERTH_TEST_NODE, which runs the container image $BERTH_WORKSPACE_IMAGE and needs no GPU."""
    node = {"kubernetes.io/hostname": os.environ["BERTH_TEST_NODE"]}
    cast.cluster.nodes.update(labels=node)
    Pool.objects.update(resource_name="", node_labels=node)
    Flavor.objects.update(units=0, cpu_millicores=500, memory_mib=512)
    Image.objects.update(reference=os.environ["BERTH_WORKSPACE_IMAGE"])
    for row in (cast.pool, cast.flavor, cast.image):
        row.refresh_from_db()


def clear_away(namespace: str, api: Api) -> None:
    """Delete a test's pods, which would take GPUs from the next test."""
    for pod in api.list("Pod", namespace=namespace):
        api.merge_patch("Pod", namespace, pod["metadata"]["name"], {"metadata": {"finalizers": None}})
    api.delete("Namespace", None, namespace)


def launched(house: Cast, name: str = "exp-1", **changes: Any) -> Workspace:
    size = SizeAsked(flavor="a100-1")
    spec = LaunchSpec(
        tenant=house.demo.slug, name=name, image=changes.pop("image", "jupyter"), size=size, **changes
    )
    return launch(house.alice, spec)


def drive(
    workspace: Workspace, done: Callable[[Workspace], bool], seconds: float = ENOUGH_SECONDS
) -> Workspace:
    """Look at the workspace again and again until it is as expected."""
    deadline = time.monotonic() + seconds
    while True:
        if Claim.objects.filter(pool=workspace.pool_id, state=Claim.State.WAITING).exists():
            admission.admit(workspace.pool_id)
        enqueue.reconcile([workspace.pk])
        look(workspace.pk)
        workspace.refresh_from_db()
        if done(workspace):
            return workspace
        if time.monotonic() > deadline:
            pytest.fail(
                f"still {workspace.phase} at {workspace.step}: {workspace.message_code} {workspace.message_data}"
            )
        time.sleep(0.02)


def claim_of(workspace: Workspace, run: UUID | None = None) -> Claim:
    """Claim of the current run, or of the given one."""
    return Claim.objects.get(pk=run or workspace.run or uuid4())


def in_phase(*phases: str) -> Callable[[Workspace], bool]:
    return lambda workspace: workspace.phase in phases and not workspace.ending


def told(workspace: Workspace) -> list[str]:
    return list(workspace.events.values_list("code", flat=True))
