"""Findings about Berth's rights in the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from django.utils.translation import gettext as _

from clusters.api import Api
from clusters.doctor.findings import Check, Finding, Level, ok, warn
from clusters.errors import ClusterRefused
from clusters.kinds import KINDS
from clusters.models import Cluster
from clusters.permissions import NEEDS, Need

AT_ONCE = 8  # access reviews


def rights(api: Api, cluster: Cluster, namespaces: Sequence[str] = ()) -> Iterator[Finding]:
    """Ask the cluster about each right by itself: its answer counts, however the right was granted."""
    served = api.groups()
    needs = [need for need in NEEDS if need.arises(served)]
    wanted = [(need, verb) for need in needs for verb in need.verbs]
    try:
        first = is_granted(api, *wanted[0])
        with ThreadPoolExecutor(AT_ONCE) as pool:
            others = list(pool.map(lambda right: is_granted(api, *right), wanted[1:]))
    except ClusterRefused as refused:
        if refused.status != 404:
            raise
        yield warn(_("The permissions of Berth cannot be checked: the cluster has no access reviews."))
        return
    granted = dict(zip(wanted, [first, *others], strict=True))
    for need in needs:
        if verbs := [verb for verb in need.verbs if not granted[need, verb]]:
            yield missing(api, need, verbs, namespaces)
    if all(granted.values()):
        yield ok(_("Berth has all %(count)s permissions that it needs.") % {"count": len(wanted)})


def missing(api: Api, need: Need, verbs: Sequence[str], namespaces: Sequence[str]) -> Finding:
    """Return a finding with lines for the ClusterRole, and the namespaces where the right is granted."""
    facts = {"verbs": ", ".join(verbs), "resource": need.resource}
    message = _("Berth is not allowed to %(verbs)s %(resource)s.") % facts
    hint = _(
        "Add these lines to Berth's ClusterRole; deploy/kubernetes/rbac.yaml has every right that it needs."
    )
    if KINDS[need.kind].namespaced:
        within = [name for name in namespaces if all(is_granted(api, need, verb, name) for verb in verbs)]
        if within:
            hint = _(
                "It has this permission in %(namespaces)s, but not in every namespace, and new tenants get "
                "new namespaces: bind the role with a ClusterRoleBinding, not a RoleBinding."
            ) % {"namespaces": _(", ").join(within)}
    rule = f'- apiGroups: ["{need.group}"]\n  resources: [{need.resource}]\n  verbs: [{", ".join(verbs)}]'
    return Finding(Level.FAIL, message, hint, Check.RIGHTS, rule)


def is_granted(api: Api, need: Need, verb: str, namespace: str = "") -> bool:
    """Return True if Berth has the right in the namespace, or in all of them if none is given."""
    attributes = {
        "group": need.group,
        "resource": need.resource.partition("/")[0],
        "subresource": need.subresource,
        "verb": verb,
        "namespace": namespace,
    }
    review = api.create(
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {name: value for name, value in attributes.items() if value}},
        }
    )
    return bool(review.get("status", {}).get("allowed"))
