"""Looks at a workspace one by one, with a mirror that is current: nothing works in the background."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any
from uuid import UUID

from clusters.api import Api
from clusters.connections import api_for
from clusters.mirror import Mirror, trimmed, workload_of
from clusters.models import Cluster, Installation
from storage.cluster.look import look as look_at_volume
from storage.models import Volume
from tests.shared.played_api import PlayedApi
from workspaces.models import Workspace
from workspaces.runs.reconcile import reconcile

if TYPE_CHECKING:
    Body = dict[str, Any]

IN_NAMESPACE = ("Pod", "Service", "PersistentVolumeClaim", "ConfigMap")
OF_CLUSTER = ("Namespace", "StorageClass", "Node")


def look(workspace_id: UUID, mirror: Mirror | None = None) -> None:
    """Look at the workspace once, and at the volumes that need it, as the process that watches its cluster does."""
    row = Workspace.objects.select_related("pool__cluster", "tenant").get(pk=workspace_id)
    mirror = mirror or listed(row.pool.cluster, row.tenant.namespace)
    for _ in reconcile([workspace_id], mirror):
        pass
    volumes = Volume.objects.filter(tenant=row.tenant, deleted_at__isnull=True).exclude(bound_to="")
    for volume in volumes.select_related("tenant", "cluster"):
        look_at_volume(volume, mirror, Installation.current_id())


def listed(cluster: Cluster, namespace: str) -> Mirror:
    """Return a mirror of one namespace, listed just now."""
    return mirror_of(api_for(cluster), namespace)


def mirror_of(api: Api, namespace: str) -> Mirror:
    mirror = Mirror(lambda: api)
    for kind in (*IN_NAMESPACE, *OF_CLUSTER):
        where = namespace if kind in IN_NAMESPACE else None
        bodies, version = api.list_with_version(kind, namespace=where, keep=trimmed)
        mirror.replace(kind, bodies, version)
    for event in api.list("Event", namespace=namespace):
        mirror.heard_event(event)
    return mirror


class PlayedMirror(Mirror):
    """Mirror of a cluster in memory: it reads the objects themselves, and so is never late."""

    def __init__(self, api: PlayedApi) -> None:
        super().__init__(lambda: api)  # type: ignore[arg-type,return-value]
        self._played = api

    def get(self, kind: str, namespace: str | None, name: str) -> Body | None:
        return deepcopy(self._played.objects.get((kind, namespace or "", name)))

    def of(self, kind: str, workload: str, *, also: Iterable[str] = (), namespace: str = "") -> list[Body]:
        names = {*also}
        return [
            deepcopy(body)
            for (of_kind, of_namespace, name), body in list(self._played.objects.items())
            if of_kind == kind
            and (workload_of(body) == workload or (of_namespace == namespace and name in names))
        ]

    def events_about(self, uid: str) -> list[Body]:
        return [event for event in self._played.of("Event") if event["involvedObject"].get("uid") == uid]

    def _answered(self, body: Body) -> Body:
        return body


class LateMirror(PlayedMirror):
    """Mirror that may be as old as the watch is late: a process that lost the lead, or a watch that broke."""

    def __init__(self, api: PlayedApi) -> None:
        super().__init__(api)
        self._current = api

    def falls_behind(self) -> None:
        self._played = PlayedApi()
        self._played.objects = deepcopy(self._current.objects)

    def is_current(self) -> None:
        self._played = self._current
