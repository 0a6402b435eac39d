"""Refusal of roles and bindings that would give more rights than their writer has."""

import json

from devcluster.access import rbac
from devcluster.access.rbac import Ask, User
from devcluster.errors import forbidden, not_found
from devcluster.resources import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, Kind, Obj
from devcluster.store import Store

ROLES = (ROLE, CLUSTER_ROLE)
BINDINGS = (ROLE_BINDING, CLUSTER_ROLE_BINDING)
EVERYTHING: list[Obj] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]
_WORDS = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "nonResourceURLs": "NonResourceURLs",
    "resourceNames": "ResourceNames",
    "verbs": "Verbs",
}


def check(store: Store, kind: Kind, new: Obj, old: Obj | None, user: User | None) -> None:
    """Raise ApiError if `user` grants more rights than they have; None is the cluster, which may grant all."""
    if kind not in ROLES + BINDINGS or user is None or rbac.MASTERS in user.groups:
        return
    if old is not None and _without_metadata(old) == _without_metadata(new):
        return
    meta = new["metadata"]
    namespace = meta.get("namespace", "")
    if kind in ROLES:
        verb, role, about = "escalate", kind, meta["name"]
        rules = new.get("rules") or []
    else:
        reference = new["roleRef"]
        verb, about = "bind", reference["name"]
        role = CLUSTER_ROLE if reference["kind"] == "ClusterRole" else ROLE
        found = rbac.role_of(store, reference, namespace)
        rules = (found.get("rules") or []) if found else None
    if rbac.verdict(store, user, Ask(verb, role.group, role.plural, "", namespace, about)).allowed:
        return
    if rules is None:
        raise not_found(kind, about)
    held = rbac.holdings(store, user, namespace).rules
    if new.get("aggregationRule") and _missing(held, EVERYTHING):
        raise forbidden(kind, about, "must have cluster-admin privileges to use the aggregationRule")
    if missing := _missing(held, rules):
        groups = " ".join(f'"{g}"' for g in user.groups)
        who = f'user "{user.name}" (groups=[{groups}])'
        why = f"{who} is attempting to grant RBAC permissions not currently held:\n" + "\n".join(missing)
        raise forbidden(kind, meta["name"], why)


def _without_metadata(obj: Obj) -> Obj:
    return {k: v for k, v in obj.items() if k != "metadata"}


def _missing(held: list[Obj], wanted: list[Obj]) -> list[str]:
    """Return the rights that are not held, one line per thing."""
    by_thing: dict[str, Obj] = {}
    for rule in wanted:
        for ask, part in rbac.atoms(rule):
            if not any(rbac.allows(own, ask) for own in held):
                thing = json.dumps(part | {"verbs": None} if "resources" in part else part)
                by_thing.setdefault(thing, part | {"verbs": []})["verbs"] += part["verbs"]
    return sorted(_told(rule) for rule in by_thing.values())


def _told(rule: Obj) -> str:
    parts = [
        f"{word}:[{' '.join(json.dumps(value) for value in rule[member])}]"
        for member, word in _WORDS.items()
        if member in rule
    ]
    return "{" + ", ".join(parts) + "}"
