"""Secrets in tenants' namespaces alone: who gets that right there, and the RoleBinding that Berth makes with each.

RBAC cannot name namespaces that do not exist yet, so a ClusterRole for Secrets is bound in each of them. Where Berth
may write Secrets everywhere, as an admin of the cluster, there is nothing to bind.
"""

from __future__ import annotations

import time
from typing import Any

from clusters.api import Api
from clusters.errors import ClusterRefused
from clusters.labels import INSTANCE, MANAGED_BY, TENANT, instance_selector
from clusters.models import Cluster
from clusters.own_place import SERVICE_ACCOUNT_USER, is_inside, own_account
from clusters.permissions import PARTS, SECRETS, SECRETS_ROLE, is_granted

Body = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
GRANTED_WITHIN_SECONDS = 5.0
PAUSE_SECONDS = 0.05


def accounts(cluster: Cluster, api: Api) -> list[Body]:
    """Return the subjects to bind; none if Berth may write Secrets in all namespaces. Raises ClusterError."""
    try:
        if all(is_granted(api, SECRETS, verb) for verb in SECRETS.verbs):
            return []
        if is_inside(cluster):
            return [subject(own_account(part)) for part in PARTS]
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        return [subject(api.create(review)["status"]["userInfo"]["username"])]
    except ClusterRefused as refused:
        if refused.status == 404:  # a cluster without reviews: then the right has to be granted everywhere
            return []
        raise


def subject(user: str) -> Body:
    """Return a user's name as a subject of a RoleBinding."""
    if user.startswith(SERVICE_ACCOUNT_USER):
        namespace, name = user.removeprefix(SERVICE_ACCOUNT_USER).split(":")
        return {"kind": "ServiceAccount", "namespace": namespace, "name": name}
    return {"kind": "User", "apiGroup": RBAC, "name": user}


def role_binding(cluster: Cluster, namespace: str, labels: dict[str, str]) -> Body:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": SECRETS_ROLE, "namespace": namespace, "labels": labels},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": SECRETS_ROLE},
        "subjects": cluster.secret_accounts,
    }


def refresh(cluster: Cluster, api: Api) -> None:
    """Find out whom to bind, and bind them in the namespaces of tenants that lack it: made by an earlier version, or
    somebody removed it. Raises ClusterError."""
    found = accounts(cluster, api)
    if found != cluster.secret_accounts:
        Cluster.objects.filter(pk=cluster.pk).update(secret_accounts=found)
        cluster.secret_accounts = found
    if not found:
        return
    mine = instance_selector()
    there = {body["metadata"]["namespace"]: body for body in api.list("RoleBinding", labels=mine)}
    for body in api.list("Namespace", labels=mine):
        name, labels = body["metadata"]["name"], body["metadata"]["labels"]
        if TENANT not in labels or body["metadata"].get("deletionTimestamp"):
            continue
        if (there.get(name) or {}).get("subjects") != found:
            own = {key: labels[key] for key in (MANAGED_BY, INSTANCE, TENANT)}
            api.apply(role_binding(cluster, name, own))


def wait(namespace: str, api: Api) -> None:
    """Wait until a RoleBinding that was just made counts: an API server learns of it some moments later."""
    end = time.monotonic() + GRANTED_WITHIN_SECONDS
    while not is_granted(api, SECRETS, "create", namespace) and time.monotonic() < end:
        time.sleep(PAUSE_SECONDS)
