"""Survey of a whole cluster: a list of each kind, page by page, compared with the rows. It changes one thing only: it
removes the finalizer of deleted pods without a row, once their end was seen, as no row is left to request that.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from accounts.models import Tenant
from clusters.api import Api
from clusters.errors import ClusterRefused, ClusterUnavailable
from clusters.labels import JOB, WARMS, WORKSPACE, instance_selector
from clusters.models import Cluster, Installation
from clusters.pods.ends import end_proven, remove_finalizer
from jobs import naming
from jobs.models import Job
from monitoring.isolation import manifests as proof
from monitoring.models import What
from monitoring.validation import steps as validation
from quotas.models import Pool
from storage.files import manifests as files
from storage.models import FilesSession, Volume
from workloads.pods.drivers import claim_name
from workspaces.models import Desired, Phase, Workspace

from . import of_jobs
from .compare import KINDS, Discrepancy, Key, Row, State, Thing, drift, named_in, thing_of, uuid_of

# Kinds read by metadata only, which suffices. So the values of Secrets never leave the cluster for this.
METADATA_ONLY = frozenset(KINDS) - {"StatefulSet", "Service", "PersistentVolumeClaim", "Pod"}
# A task is killed without a word after two minutes; one request may take half a minute.
MOST_SECONDS = 80.0
FILES_GONE_WITHIN = timedelta(minutes=5)
AT_REST = {Phase.WAITING, Phase.STOPPED, Phase.FAILED}


@dataclass
class SurveyResult:
    found: list[Discrepancy] = field(default_factory=list)
    moving: set[UUID] = field(default_factory=set)  # workspaces in transition: their findings would be wrong
    objects: int = 0


def survey(cluster: Cluster, api: Api) -> SurveyResult:
    rows = rows_of(cluster)
    seen = SurveyResult(moving={row.id for row in rows.values() if row.state == State.MOVES})
    held: list[dict[str, Any]] = []
    jobs = of_jobs.namespaces_of(cluster)
    found = list(drift(rows, namespaces(), things(cluster, api, seen, held), other_claims(cluster), jobs))
    seen.moving |= moved(cluster, rows, {one.workspace for one in found if one.workspace})
    seen.found = check_against_other_rows(cluster, [one for one in found if one.workspace not in seen.moving])
    remove_finalizers_of_unowned_pods(held, api)
    return seen


def rows_of(cluster: Cluster, *ids: UUID) -> dict[UUID, Row]:
    """Return the rows of workspaces that are not deleted; only those with `ids`, if any are given."""
    workspaces = Workspace.objects.filter(pool__cluster=cluster, deleted_at__isnull=True)
    if ids:
        workspaces = workspaces.filter(pk__in=ids)
    values = workspaces.values_list("pk", "tenant__slug", "phase", "desired", "ending", "dirty_since")
    return {
        pk: Row(
            pk,
            Tenant(slug=slug).namespace,
            State.MOVES if ending or dirty_since else state_in(Phase(phase), Desired(desired)),
            has_address=desired != Desired.STOPPED or not cluster.frees_addresses,
        )
        for pk, slug, phase, desired, ending, dirty_since in values.iterator()
    }


def moved(cluster: Cluster, rows: Mapping[UUID, Row], ids: set[UUID]) -> set[UUID]:
    """Return workspaces whose rows changed while the objects were read: launched, stopped or deleted meanwhile."""
    now = rows_of(cluster, *ids) if ids else {}
    return {one for one in ids if now.get(one) != rows.get(one)}


def state_in(phase: Phase, desired: Desired) -> State:
    if phase == Phase.READY and desired == Desired.RUNNING:
        return State.RUNS
    return State.RESTS if phase in AT_REST and desired != Desired.DELETED else State.MOVES


def namespaces() -> dict[str, str]:
    return {tenant.namespace: tenant.slug for tenant in Tenant.objects.only("slug")}


def other_claims(cluster: Cluster) -> frozenset[str]:
    """Return PVCs that are no workspace's: volumes as namespace/name, which their keeper watches; drivers of pools on
    old nodes by name, as each tenant has one."""
    pools = Pool.objects.filter(cluster=cluster).exclude(driver_path="")
    volumes = Volume.objects.filter(cluster=cluster, deleted_at__isnull=True)
    rows = volumes.only("claim_name", "tenant__slug").select_related("tenant").iterator()
    of_volumes = (f"{volume.tenant.namespace}/{volume.object_name}" for volume in rows)
    return frozenset([*map(claim_name, pools), *of_volumes])


def things(cluster: Cluster, api: Api, seen: SurveyResult, held: list[dict[str, Any]]) -> Iterator[Thing]:
    """Yield all objects of this installation. Add deleted pods that only our finalizer keeps to `held`."""
    end = time.monotonic() + MOST_SECONDS
    spaces: list[str] = []
    of_tests = {validation.own_namespace(), *proof.namespaces(Installation.current_id())}
    for kind in KINDS:
        within = spaces if kind == "Secret" and cluster.secret_accounts else None
        for body in bodies_of(kind, within, api):
            if time.monotonic() > end:
                raise ClusterUnavailable(f"Its objects were not read within {MOST_SECONDS:.0f} seconds.")
            seen.objects += 1
            if of_tests & {body["metadata"]["name"], body["metadata"].get("namespace")}:
                continue  # tests of GPUs and of isolation end and are removed by themselves
            if serves_files(body) or WARMS in (body["metadata"].get("labels") or {}):
                continue  # the watcher removes its pods that pull images, whatever the rows say
            if kind == "Namespace":
                spaces.append(body["metadata"]["name"])
            if kind == "Pod" and body["metadata"].get("deletionTimestamp") and end_proven(body):
                held.append(body)
            yield thing_of(body)


def bodies_of(kind: str, within: list[str] | None, api: Api) -> Iterator[dict[str, Any]]:
    """Yield the installation's objects of a kind: of the cluster, or `within` namespaces in which alone it is granted.

    One without the right is passed over: doctor names it, and the watcher binds it within minutes.
    """
    options: dict[str, Any] = {"labels": instance_selector(), "metadata_only": kind in METADATA_ONLY}
    if within is None:
        yield from api.each(kind, **options)
        return
    for namespace in within:
        try:
            yield from api.each(kind, namespace=namespace, **options)
        except ClusterRefused as refused:
            if refused.status != 403:
                raise


def serves_files(body: dict[str, Any]) -> bool:
    """Return True for an object of a files session that has not ended long ago, and for the program of sessions."""
    name = body["metadata"]["name"]
    if name.startswith(files.PREFIX):
        return bool(body["kind"] == "ConfigMap")
    session = uuid_of(name.removeprefix("files-")) if name.startswith("files-") else None
    lately = timezone.now() - FILES_GONE_WITHIN
    is_open = Q(ended_at=None) | Q(ended_at__gt=lately)
    return session is not None and FilesSession.objects.filter(is_open, pk=session).exists()


def thing_at(key: Key, api: Api) -> Thing | None:
    """Return the object as it is now, if it belongs to this installation; None otherwise."""
    bodies = api.each(
        key.kind,
        namespace=key.namespace or None,
        labels=instance_selector(),
        fields={"metadata.name": key.name},
        metadata_only=key.kind in METADATA_ONLY,
    )
    return next(map(thing_of, bodies), None)


def check_against_other_rows(cluster: Cluster, found: list[Discrepancy]) -> list[Discrepancy]:
    """Leave out unwanted objects that a row of another cluster has: that cluster is this one under two names in Berth,
    and its own look reports the object. A row counts only for objects in its own namespace: an object of that name
    elsewhere is a copy. The same for jobs, whose rows may also have been written since.
    """
    jobs = {one.job for one in found if one.job}
    of_job = of_jobs.namespaces_of(None, *jobs) if jobs else {}
    ids = {one.workspace for one in found if one.what == What.UNWANTED and one.workspace}
    rows = Workspace.objects.filter(pk__in=ids, deleted_at__isnull=True).exclude(pool__cluster=cluster)
    others = {row.pk: row for row in rows.select_related("tenant")}

    def is_of_another(one: Discrepancy) -> bool:
        if one.job:
            return naming.named_in(one.key.name) == one.job and of_job.get(one.job) == one.key.namespace
        row = others.get(one.workspace) if one.workspace and one.what == What.UNWANTED else None
        return (
            row is not None and one.key.namespace == row.tenant.namespace and named_in(one.key.name) == row.pk
        )

    return [one for one in found if not is_of_another(one)]


def remove_finalizers_of_unowned_pods(held: list[dict[str, Any]], api: Api) -> None:
    def owner(pod: dict[str, Any]) -> UUID | None:
        labels = pod["metadata"]["labels"]
        return uuid_of(labels.get(WORKSPACE) or labels.get(JOB) or "")

    ids = [pk for pk in map(owner, held) if pk is not None]
    known = set(Workspace.objects.filter(pk__in=ids).values_list("pk", flat=True))
    known |= set(Job.objects.filter(pk__in=ids, deleted_at=None).values_list("pk", flat=True))
    for pod in held:
        if owner(pod) not in known:
            remove_finalizer(pod, api)
