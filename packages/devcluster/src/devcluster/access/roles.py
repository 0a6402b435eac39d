"""Roles and their bindings as objects: defaults and validation."""

from collections.abc import Iterator

from devcluster.errors import Cause, invalid_value, not_supported, required
from devcluster.resources import ROLE, Obj


def fill_binding(binding: Obj) -> None:
    binding.setdefault("roleRef", {}).setdefault("apiGroup", ROLE.group)
    for subject in binding.get("subjects") or []:
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", ROLE.group)


def role(obj: Obj) -> Iterator[Cause]:
    yield from _rules(obj, namespaced=True)


def cluster_role(obj: Obj) -> Iterator[Cause]:
    yield from _rules(obj, namespaced=False)


def _rules(obj: Obj, namespaced: bool) -> Iterator[Cause]:
    for n, rule in enumerate(obj.get("rules") or []):
        at, paths = f"rules[{n}]", rule.get("nonResourceURLs")
        if not rule.get("verbs"):
            yield required(f"{at}.verbs", "verbs must contain at least one value")
        if paths and namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            yield invalid_value(f"{at}.nonResourceURLs", paths, why)
        elif paths and any(rule.get(k) for k in ("apiGroups", "resources", "resourceNames")):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid_value(f"{at}.nonResourceURLs", paths, why)
        elif not paths and not rule.get("apiGroups"):
            yield required(f"{at}.apiGroups", "resource rules must supply at least one api group")
        elif not paths and not rule.get("resources"):
            yield required(f"{at}.resources", "resource rules must supply at least one resource")


def role_binding(obj: Obj) -> Iterator[Cause]:
    yield from _binding(obj, ("Role", "ClusterRole"))


def cluster_role_binding(obj: Obj) -> Iterator[Cause]:
    yield from _binding(obj, ("ClusterRole",))
    for n, subject in enumerate(obj.get("subjects") or []):
        if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
            yield required(f"subjects[{n}].namespace")


def _binding(obj: Obj, kinds: tuple[str, ...]) -> Iterator[Cause]:
    reference = obj["roleRef"]
    if reference.get("kind") not in kinds:
        yield not_supported("roleRef.kind", reference.get("kind", ""), kinds)
    if not reference.get("name"):
        yield required("roleRef.name")
    for n, subject in enumerate(obj.get("subjects") or []):
        known = ("ServiceAccount", "User", "Group")
        if not subject.get("name"):
            yield required(f"subjects[{n}].name")
        if subject.get("kind") not in known:
            yield not_supported(f"subjects[{n}].kind", subject.get("kind", ""), known)


def binding_change(new: Obj, old: Obj) -> Iterator[Cause]:
    if new["roleRef"] != old["roleRef"]:
        given = {word: new["roleRef"].get(word[0].lower() + word[1:], "") for word in ("Kind", "Name")}
        value = {"APIGroup": new["roleRef"].get("apiGroup", ""), **given}
        yield invalid_value("roleRef", value, "cannot change roleRef")
