"""Findings about Berth's rights in the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from django.utils.translation import gettext as _

from clusters.api import Api
from clusters.doctor.findings import Check, Finding, Level, ok, warn
from clusters.errors import ClusterRefused
from clusters.kinds import KINDS
from clusters.labels import instance_selector
from clusters.models import Cluster
from clusters.own_place import SERVICE_ACCOUNT_USER, is_inside, own_account, own_namespace
from clusters.permissions import NEEDS, PARTS, SECRETS, Need, is_granted

AT_ONCE = 8  # access reviews


def rights(api: Api, cluster: Cluster, namespaces: Sequence[str] = ()) -> Iterator[Finding]:
    """Ask the cluster about each right by itself: its answer counts, however the right was granted.

    Where Berth runs in the cluster, its parts have accounts of their own: each is asked about.
    """
    served = api.groups()
    parts = {own_account(part): needs for part, needs in PARTS.items()} if is_inside(cluster) else {"": NEEDS}
    needs = [(account, need) for account, part in parts.items() for need in part if need.arises(served)]
    wanted = [(need, verb, "", account) for account, need in needs for verb in need.verbs]
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
    for account, need in needs:
        if verbs := [verb for verb in need.verbs if not granted[need, verb, "", account]]:
            yield missing(api, need, verbs, namespaces, account)
    lacking = list(of_secrets(api, parts, namespaces))
    yield from lacking
    if all(granted.values()) and not lacking:
        yield ok(_("Berth has all %(count)s permissions that it needs.") % {"count": len(wanted)})
    if is_inside(cluster):
        yield from of_earlier_account(api)


def of_earlier_account(api: Api) -> Iterator[Finding]:
    """Name the one account of earlier versions while it still has their rights: an upgrade does not delete it."""
    account = f"{SERVICE_ACCOUNT_USER}{own_namespace()}:berth"
    if is_granted(api, Need("Node", ("patch",)), "patch", "", account):
        yield warn(
            _("The account %(account)s of an earlier version still has its rights.") % {"account": account},
            _(
                "No part of Berth uses it here. Delete it: kubectl delete clusterrolebinding/berth clusterrole/berth"
            ),
        )


def of_secrets(api: Api, accounts: Iterable[str], namespaces: Sequence[str]) -> Iterator[Finding]:
    """Secrets are written in tenants' namespaces alone, by a RoleBinding that the watcher makes in each."""
    everywhere = {
        account: all(is_granted(api, SECRETS, verb, "", account) for verb in SECRETS.verbs)
        for account in accounts
    }
    own = [] if all(everywhere.values()) else [name for name in namespaces if is_own(api, name)]
    for account in (account for account, is_granted_all in everywhere.items() if not is_granted_all):
        for name in own:
            verbs = [verb for verb in SECRETS.verbs if not is_granted(api, SECRETS, verb, name, account)]
            if verbs:
                yield missing(api, SECRETS, verbs, (), account)
                break


def is_own(api: Api, namespace: str) -> bool:
    """Return True if the namespace is there and of this installation."""
    there = api.get("Namespace", None, namespace) or {"metadata": {}}
    return instance_selector().items() <= (there["metadata"].get("labels") or {}).items()


def missing(
    api: Api, need: Need, verbs: Sequence[str], namespaces: Sequence[str], account: str = ""
) -> Finding:
    """Return a finding with lines for the ClusterRole, and the namespaces where the right is granted."""
    facts = {"verbs": ", ".join(verbs), "resource": need.resource}
    message = _("Berth is not allowed to %(verbs)s %(resource)s.") % facts
    hint = _(
        "Add these lines to Berth's ClusterRole; deploy/kubernetes/rbac.yaml has every right that it needs."
    )
    if KINDS[need.kind].namespaced:
        within = [
            name for name in namespaces if all(is_granted(api, need, verb, name, account) for verb in verbs)
        ]
        if within:
            hint = _(
                "It has this permission in %(namespaces)s, but not in every namespace, and new tenants get "
                "new namespaces: bind the role with a ClusterRoleBinding, not a RoleBinding."
            ) % {"namespaces": _(", ").join(within)}
    role = f"# ClusterRole {account.rpartition(':')[2]}\n" if account else ""
    rule = (
        f'{role}- apiGroups: ["{need.group}"]\n  resources: [{need.resource}]\n  verbs: [{", ".join(verbs)}]'
    )
    return Finding(Level.FAIL, message, hint, Check.RIGHTS, rule)
