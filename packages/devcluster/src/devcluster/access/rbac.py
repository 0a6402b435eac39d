"""Roles and bindings checked against one request. Pure: the store is read, nothing is written.

Rights only add up; a request that no rule grants is refused, in the words of Kubernetes 1.36.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from devcluster.errors import ApiError, forbidden
from devcluster.resources import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, Kind, Obj
from devcluster.store import Store

MASTERS = "system:masters"
"""A group that may do everything, whatever the roles say."""


@dataclass(frozen=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Ask:
    """Request as rules see it: a verb on a resource, or on a path outside the resources."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True)
class Verdict:
    allowed: bool
    reason: str = ""


@dataclass(frozen=True)
class Grant:
    """Rule that a user holds, and the binding that grants it."""

    rule: Obj
    through: str


@dataclass
class Holdings:
    """Rights of a user in a namespace ("" for the cluster scope), and the missing roles that bindings name."""

    grants: list[Grant] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def rules(self) -> list[Obj]:
        return [grant.rule for grant in self.grants]

    @property
    def told_errors(self) -> str:
        errors = list(dict.fromkeys(self.errors))
        return f"[{', '.join(errors)}]" if len(errors) > 1 else "".join(errors)


def verdict(store: Store, user: User, ask: Ask) -> Verdict:
    if MASTERS in user.groups:
        return Verdict(True)
    held = holdings(store, user, ask.namespace)
    for grant in held.grants:
        if allows(grant.rule, ask):
            return Verdict(True, f"RBAC: allowed by {grant.through}")
    return Verdict(False, f"RBAC: {held.told_errors}" if held.errors else "")


def check(store: Store, user: User, ask: Ask) -> None:
    found = verdict(store, user, ask)
    if not found.allowed:
        raise refusal(user, ask, found.reason)


def refusal(user: User, ask: Ask, reason: str = "") -> ApiError:
    who = f'User "{user.name}" cannot {ask.verb}'
    tail = f": {reason}" if reason else ""
    if ask.path:
        return ApiError(403, "Forbidden", f'forbidden: {who} path "{ask.path}"{tail}', {})
    scope = f'in the namespace "{ask.namespace}"' if ask.namespace else "at the cluster scope"
    why = f'{who} resource "{ask.full_resource}" in API group "{ask.group}" {scope}{tail}'
    return forbidden(Kind(ask.group, "", "", ask.resource), ask.name, why)


def holdings(store: Store, user: User, namespace: str) -> Holdings:
    held = Holdings()
    for binding in store.all(CLUSTER_ROLE_BINDING):
        _add(store, held, user, binding, "")
    for binding in store.all(ROLE_BINDING, namespace) if namespace else ():
        _add(store, held, user, binding, namespace)
    return held


def _add(store: Store, held: Holdings, user: User, binding: Obj, namespace: str) -> None:
    """Add to `held` the rules that one binding gives to the user."""
    subject = next((s for s in binding.get("subjects") or [] if _means(s, user, namespace)), None)
    if subject is None:
        return
    kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
    role = role_of(store, binding["roleRef"], namespace)
    if role is None:
        held.errors.append(f'{kind.lower()}.{ROLE.group} "{name}" not found')
        return
    what = "RoleBinding" if namespace else "ClusterRoleBinding"
    place = f"/{namespace}" if namespace else ""
    whom = subject["name"] + (f"/{subject['namespace']}" if subject.get("namespace") else "")
    through = (
        f'{what} "{binding["metadata"]["name"]}{place}" of {kind} "{name}" to {subject["kind"]} "{whom}"'
    )
    held.grants += [Grant(rule, through) for rule in role.get("rules") or []]


def role_of(store: Store, reference: Obj, namespace: str) -> Obj | None:
    if reference["kind"] == "ClusterRole":
        return store.get(CLUSTER_ROLE, "", reference["name"])
    return store.get(ROLE, namespace, reference["name"])


def _means(subject: Obj, user: User, namespace: str) -> bool:
    if subject["kind"] == "User":
        return bool(subject["name"] == user.name)
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    return account_name(subject.get("namespace") or namespace, subject["name"]) == user.name


def account_name(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}"


def allows(rule: Obj, ask: Ask) -> bool:
    if not _in(ask.verb, rule.get("verbs")):
        return False
    if ask.path:
        return any(_path_fits(pattern, ask.path) for pattern in rule.get("nonResourceURLs") or [])
    names = rule.get("resourceNames") or []
    return (
        _in(ask.group, rule.get("apiGroups"))
        and _resource_fits(rule.get("resources") or [], ask)
        and (not names or ask.name in names)
    )


def _in(value: str, allowed: list[str] | None) -> bool:
    return allowed is not None and ("*" in allowed or value in allowed)


def _resource_fits(resources: list[str], ask: Ask) -> bool:
    return _in(ask.full_resource, resources) or (
        bool(ask.subresource) and f"*/{ask.subresource}" in resources
    )


def _path_fits(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def atoms(rule: Obj) -> Iterator[tuple[Ask, Obj]]:
    """Split a rule into parts of one verb on one thing; yield each as a request and as a rule."""
    names = rule.get("resourceNames") or [""]
    for group in rule.get("apiGroups") or []:
        for resource in rule.get("resources") or []:
            for verb in rule.get("verbs") or []:
                for name in names:
                    part: Obj = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                    plural, _, subresource = resource.partition("/")
                    ask = Ask(verb, group, plural, subresource, name=name)
                    yield ask, part | ({"resourceNames": [name]} if name else {})
    for path in rule.get("nonResourceURLs") or []:
        for verb in rule.get("verbs") or []:
            yield Ask(verb, path=path), {"nonResourceURLs": [path], "verbs": [verb]}
