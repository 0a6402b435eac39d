"""Steps of a proof: two pods, the control without the policy, the policy, the result; and the removal of its pods.

The row is the truth, and the cluster is read anew each time: a worker may die anywhere, and the next look goes on. A
row keeps being looked at until its pods are removed.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict
from accounts.locks import alone
from accounts.models import Scope
from accounts.trail import audit
from clusters import labels
from clusters.api import Api
from clusters.connections import api_for
from clusters.errors import ClusterError, ClusterRefused
from clusters.isolation.networks import known
from clusters.models import Cluster, Installation
from clusters.watch.watching import Changed
from monitoring import enqueue
from monitoring.models import IsolationProof
from vitals.clock import is_near_now
from workloads.images import catalogue

from . import judging, manifests
from .judging import Outcome, Round, Verdict
from .manifests import LISTENER, PORTS, SIDES, TRIER

log = logging.getLogger(__name__)

GIVEN_UP = timedelta(minutes=5)
CONTROL_ROUNDS = 20  # of a second or more, in which the second pod must reach the first without a policy
SETTLED_WITHIN = timedelta(seconds=60)  # for a network plugin to apply a policy
LOST_AFTER = timedelta(seconds=30)  # a task that no worker began, or that died with its worker
LOG_LINES = 1000
MOST_SAID = 400


def start(actor: Actor | None, cluster: Cluster, image: str = "") -> UUID:
    """Start a proof; return its id. `actor`: None for the command on the server. Raise Conflict if it cannot start.

    `image`: a container image with Python 3; empty: the first one that the catalogue offers.
    """
    if actor is not None:
        actor.require(Scope.ADMIN)
    offered = catalogue().first()
    if not image and offered is None:
        raise Conflict(
            "proof_without_image",
            _("The catalogue has no image to prove the isolation with."),
            _("Add an image that has Python 3, or name one by --image."),
        )
    try:
        with transaction.atomic():
            row = IsolationProof.objects.create(
                cluster=cluster,
                image=image or (offered.reference if offered else ""),
                uid=offered.uid if offered else 1000,
                asked_by=actor.user if actor else None,
            )
            audit.record(actor, "cluster.prove_isolation", target=cluster, data={"name": cluster.name})
            enqueue_look(row.pk)
    except IntegrityError as error:
        if "one_isolation_proof_at_a_time" not in str(error):
            raise
        raise Conflict(
            "proof_under_way",
            _("A proof of isolation is under way in this cluster."),
            _("Its result is shown on the cluster's page Doctor."),
        ) from error
    return row.pk


@transaction.atomic
def enqueue_look(proof_id: UUID) -> None:
    IsolationProof.objects.filter(pk=proof_id).update(queued_at=timezone.now())
    enqueue.prove_isolation(proof_id)


def on_tick(**_options: object) -> None:
    on_its_way = is_near_now("queued_at", timezone.now(), LOST_AFTER)
    for pk in IsolationProof.objects.filter(~on_its_way, cleared_at=None).values_list("pk", flat=True):
        enqueue_look(pk)


def on_objects_changed(*, changes: list[Changed], **_options: object) -> None:
    """Look at once when a pod of a proof has changed."""
    labelled = {(step.body["metadata"].get("labels") or {}).get(labels.VALIDATION) for step in changes}
    if any(labelled):
        for pk in IsolationProof.objects.filter(cleared_at=None).values_list("pk", flat=True):
            if str(pk) in labelled:
                enqueue_look(pk)


def look(proof_id: UUID) -> None:
    """Do what can be done now: one step, or the removal of the pods once it has ended."""
    with alone(proof_id) as mine:
        row = IsolationProof.objects.filter(pk=proof_id, cleared_at=None).select_related("cluster").first()
        if not mine or row is None:
            return
        IsolationProof.objects.filter(pk=proof_id).update(queued_at=None)
        message = ""
        try:
            _look(row, api_for(row.cluster))
        except ClusterRefused as refused:
            if row.ended_at is None:
                end(row, Verdict(Outcome.UNCLEAR, "proof_refused", {"message": refused.message[:MOST_SAID]}))
        except ClusterError as error:
            message = error.message
        except Exception:  # an unexpected error: try again, but not for ever
            log.exception("the proof of isolation of %s could not be looked at", row.cluster_id)
        if row.ended_at is None and is_overdue(row):
            end(row, too_long(message))


def is_overdue(row: IsolationProof) -> bool:
    return timezone.now() - row.asked_at > GIVEN_UP


def _look(row: IsolationProof, api: Api) -> None:
    if row.ended_at is None:
        step(row, api)
    if row.ended_at is not None:
        clear(row, api)


def step(row: IsolationProof, api: Api) -> None:
    instance = Installation.current_id()
    if job_of(row, LISTENER, api) is None:
        if row.policed_at is None:
            prepare(row, api, instance)
        else:  # deleted by somebody
            end(row, too_long(""))
        return
    listener = pod_of(row, LISTENER, api)
    address = address_of(listener)
    if not address:
        if has_ended(listener) or is_overdue(row):
            end(row, too_long(said_about(listener)))
        return
    if job_of(row, TRIER, api) is None:
        tried = judging.targets(address, api.list("Node"), known(row.cluster).api)
        wish = {"try": tried, "resolve": manifests.RESOLVED, "seconds": manifests.JOB_SECONDS}
        api.apply(manifests.job(row, TRIER, instance, wish))
        return
    found = rounds_of(row, api)
    if row.policed_at is None:
        apply_policies(row, api, found, instance)
    else:
        conclude(row, found)


def prepare(row: IsolationProof, api: Api, instance: UUID) -> None:
    """Make both namespaces, with a policy that allows all, and the pod that listens."""
    for side in SIDES:
        name = manifests.tenant(side, instance).namespace
        there = api.get("Namespace", None, name)
        if there is not None and (there["metadata"].get("labels") or {}).get(labels.INSTANCE) != str(
            instance
        ):
            raise ClusterRefused(409, "Conflict", f"The namespace {name} has another owner.")
        remove_leftovers(row, name, api)
        for body in manifests.place(side, row.cluster, instance, policed=False):
            api.apply(body)
    api.apply(manifests.job(row, LISTENER, instance, {"listen": list(PORTS)}))


def remove_leftovers(row: IsolationProof, namespace: str, api: Api) -> None:
    """Remove the Jobs of other proofs, such as of a database that was restored since."""
    for body in api.list("Job", namespace=namespace, labels=labels.instance_selector()):
        if body["metadata"]["name"] != manifests.name_of(row):
            api.delete("Job", namespace, body["metadata"]["name"], uid=body["metadata"]["uid"])


def apply_policies(row: IsolationProof, api: Api, found: list[Round], instance: UUID) -> None:
    """Give both namespaces the tenants' policy, once the second pod has reached the first without it."""
    before = judging.control(found)
    if before is None:
        if len(found) >= CONTROL_ROUNDS:
            end(row, Verdict(Outcome.UNCLEAR, "proof_without_control"))
        elif is_overdue(row):
            end(row, too_long(said_about(pod_of(row, TRIER, api))))
        return
    for body in manifests.policies(row.cluster, instance):
        api.apply(body)
    row.before = {"reached": dict(before.reached), "dns": before.dns}
    row.tried_before, row.policed_at = found[-1].number, timezone.now()
    row.save(update_fields=["before", "tried_before", "policed_at"])


def conclude(row: IsolationProof, found: list[Round]) -> None:
    """End the proof by the last round, if it keeps the pods apart or if the policy had time enough to do so."""
    # The round after the last one known may have begun before the policy.
    later = [one for one in found if one.number > row.tried_before + 1]
    if not later or row.policed_at is None:
        return
    before = Round(row.tried_before, row.before["reached"], row.before["dns"])
    verdict = judging.judge(before, later[-1])
    is_settled = timezone.now() - row.policed_at > SETTLED_WITHIN
    if is_settled or verdict.code in ("proof_apart", "proof_node_reached"):
        row.after = {"reached": dict(later[-1].reached), "dns": later[-1].dns}
        end(row, verdict)


def end(row: IsolationProof, verdict: Verdict) -> None:
    instance = Installation.current_id()
    row.outcome, row.code, row.ended_at = verdict.outcome, verdict.code, timezone.now()
    row.data = {**verdict.data, "namespaces": sorted(manifests.namespaces(instance))}
    row.save(update_fields=["outcome", "code", "ended_at", "data", "after"])


def too_long(message: str) -> Verdict:
    return Verdict(Outcome.UNCLEAR, "proof_too_long", {"message": message[:MOST_SAID]})


def clear(row: IsolationProof, api: Api) -> None:
    """Remove the pods. If the cluster does not answer, the next look tries again, and the Jobs end by themselves."""
    instance = Installation.current_id()
    for side in SIDES:
        api.delete("Job", manifests.tenant(side, instance).namespace, manifests.name_of(row))
    row.cleared_at = timezone.now()
    row.save(update_fields=["cleared_at"])


def job_of(row: IsolationProof, side: str, api: Api) -> dict[str, Any] | None:
    return api.get("Job", manifests.tenant(side, Installation.current_id()).namespace, manifests.name_of(row))


def pod_of(row: IsolationProof, side: str, api: Api) -> dict[str, Any] | None:
    instance = Installation.current_id()
    found = api.list(
        "Pod", namespace=manifests.tenant(side, instance).namespace, labels=manifests.own(row, instance)
    )
    return max(found, key=lambda pod: str(pod["metadata"].get("creationTimestamp")), default=None)


def address_of(pod: dict[str, Any] | None) -> str:
    status = pod.get("status", {}) if pod else {}
    return str(status.get("podIP") or "") if status.get("phase") == "Running" else ""


def has_ended(pod: dict[str, Any] | None) -> bool:
    """Return True if it will not run any more, such as in an image without Python: its Job makes no other."""
    return pod is not None and pod.get("status", {}).get("phase") in ("Failed", "Succeeded")


def said_about(pod: dict[str, Any] | None) -> str:
    """Return what the cluster says about a pod that does not run."""
    status = pod.get("status", {}) if pod else {}
    states = [one.get("state", {}) for one in status.get("containerStatuses") or []]
    stopped = [state.get("waiting") or state.get("terminated") or {} for state in states]
    told = [entry.get("message") or "" for entry in [*stopped, *(status.get("conditions") or [])]]
    return next(iter(filter(None, told)), "")


def rounds_of(row: IsolationProof, api: Api) -> list[Round]:
    pod = pod_of(row, TRIER, api)
    if pod is None or not address_of(pod):
        return []
    lines = api.logs(
        pod["metadata"]["namespace"],
        pod["metadata"]["name"],
        container=manifests.CONTAINER,
        tail_lines=LOG_LINES,
    )
    return judging.rounds(lines)
