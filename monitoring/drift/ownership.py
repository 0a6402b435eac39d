"""Changes by others to an object that Berth keeps. Pure: the API server records who set which field last.

That record (`managedFields`) is the evidence, not a comparison with what this version of Berth would create: a running
object was created by the version of its day, and stays so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any

from clusters.labels import INSTANCE, MANAGED_BY, MANAGER, OWNER, RUN, TENANT, WORKSPACE, digest_of
from clusters.pods.ends import FINALIZER, end_proven, is_held
from clusters.site import registries

Object = Mapping[str, Any]
Fields = tuple[str, ...]  # in the API server's spelling: f:<field>, k:<key of a list's entry>, v:<value>

# Limits: these texts can be written by anybody who may write the object, and they are shown to admins.
LONGEST_VALUE = 120
LONGEST_PATH = 240
DEEPEST = 64

# Fields that Berth keeps, by kind. Other fields there (status, labels of others) belong to others.
KEPT: Mapping[str, tuple[Fields, ...]] = {
    "Service": (("f:spec",),),
    "PersistentVolumeClaim": (("f:spec", "f:resources"),),
    "Secret": (("f:data",), ("f:type",), ("f:immutable",)),
    "ConfigMap": (("f:data",), ("f:binaryData",), ("f:immutable",)),
    "Pod": (("f:spec",),),
    "NetworkPolicy": (("f:spec",),),
    "LimitRange": (("f:spec",),),
    "ResourceQuota": (("f:spec",),),
    "ServiceAccount": (("f:automountServiceAccountToken",),),  # platforms add pull secrets elsewhere
    "Namespace": (),
}
# Written by whatever assigns addresses to Services.
OF_THE_CLUSTER = {("f:spec", "f:loadBalancerIP"), ("f:spec", "f:loadBalancerClass")}
OUR_LABELS = tuple(
    ("f:metadata", "f:labels", f"f:{label}")
    for label in (MANAGED_BY, INSTANCE, TENANT, OWNER, WORKSPACE, RUN)
)
POD_SECURITY = ("f:metadata", "f:labels", "f:pod-security.kubernetes.io/enforce")
# Fields that Berth always sets: if they have no owner, somebody removed them.
ALWAYS: Mapping[str, tuple[Fields, ...]] = {
    "Service": (("f:spec", "f:type"), ("f:spec", "f:selector"), ("f:spec", "f:ports")),
    "Secret": tuple(
        ("f:data", f"f:{key}") for key in ("jupyter-token", "ssh_host_ed25519_key", "authorized_keys")
    ),
    "ConfigMap": tuple(("f:data", f"f:{key}") for key in ("passwd", "group")),
    "NetworkPolicy": tuple(
        ("f:spec", f"f:{key}") for key in ("policyTypes", "podSelector", "ingress", "egress")
    ),
    "LimitRange": (("f:spec", "f:limits"),),
    "ResourceQuota": (("f:spec", "f:hard"),),
    "ServiceAccount": (("f:automountServiceAccountToken",),),
    "Namespace": (POD_SECURITY,),
}
OF_REGISTRIES: tuple[Fields, ...] = (("f:data", "f:.dockerconfigjson"), ("f:type",))
# Fields whose values are shown; the value of any other field may be a secret.
SHOWN = {
    "f:image", "f:replicas", "f:type", "f:selector", "f:storage", "f:port", "f:targetPort", "f:nodePort",
    "f:externalName", "f:externalIPs", "f:cpu", "f:memory", "f:nvidia.com/gpu", "f:clusterIP", "f:serviceName",
    "f:serviceAccountName", "f:privileged", "f:runAsUser", "f:hostNetwork", "f:automountServiceAccountToken",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """Field that is not as Berth left it. Empty `by`: the field has no owner any more, so it was removed."""

    fields: Fields
    by: str = ""
    at: str = ""
    value: str | None = None  # None: not shown
    digest: str = ""

    @property
    def path(self) -> str:
        """Return the path in the usual spelling: spec.template.spec.containers[name=workspace].image"""
        spelled = "".join(_spelled(field) for field in self.fields).removeprefix(".")
        return printable(spelled, LONGEST_PATH)


def differences(body: Object) -> list[Difference]:
    """Return fields that others set or removed among Berth's. Empty if the server records no owners."""
    kind, entries = str(body["kind"]), body["metadata"].get("managedFields") or []
    if not entries:
        return []
    found = list(_set_by_others(kind, body, entries))
    if kind == "Pod":
        return found + _without_finalizer(body)
    everybodys = [entry.get("fieldsV1") or {} for entry in entries]
    is_registries = kind == "Secret" and body["metadata"].get("name") == registries.NAME
    always = OF_REGISTRIES if is_registries else ALWAYS.get(kind, ())
    gone = (fields for fields in always if not any(_has(owned, fields) for owned in everybodys))
    return found + [Difference(fields) for fields in gone]


def _set_by_others(kind: str, body: Object, entries: Sequence[Object]) -> Iterator[Difference]:
    for entry in entries:
        if entry.get("manager") == MANAGER or entry.get("subresource") == "status":
            continue
        owned = entry.get("fieldsV1") or {}
        if by_its_set(body) and _has(owned, ("f:metadata", "f:ownerReferences")):
            continue  # written by its controller, which created it
        for fields in _leaves(owned):
            if _is_kept(kind, fields):
                value = value_at(body, fields)
                yield Difference(
                    fields,
                    by=printable(str(entry.get("manager") or "?")),
                    at=printable(str(entry.get("time") or "")),
                    value=printable(str(value)) if _is_shown(fields) and value is not None else None,
                    digest=digest_of(value),
                )


def by_its_set(body: Object) -> bool:
    """Return True for a pod that a StatefulSet made, as in earlier versions of Berth: nobody else can use its name."""
    return bool(body["kind"] == "Pod" and body["metadata"]["name"].endswith("-0"))


def _is_kept(kind: str, fields: Fields) -> bool:
    if fields[:2] in OF_THE_CLUSTER and kind == "Service":
        return False
    if kind == "Namespace" and fields[:3] == POD_SECURITY:
        return True
    return any(fields[: len(kept)] == kept for kept in (*KEPT.get(kind, ()), *OUR_LABELS))


def _is_shown(fields: Fields) -> bool:
    return fields[-1] in SHOWN or fields[:2] == ("f:metadata", "f:labels")


def _without_finalizer(pod: Object) -> list[Difference]:
    """Report a missing finalizer: without it the pod's end would not be seen."""
    if is_held(pod) or end_proven(pod):
        return []
    return [Difference(("f:metadata", "f:finalizers", f'v:"{FINALIZER}"'))]


# --- The fields of managedFields


def _leaves(owned: Object, above: Fields = ()) -> Iterator[Fields]:
    below = {key: value for key, value in owned.items() if key != "."}
    if not below or len(above) == DEEPEST:
        if above:
            yield above
        return
    for key, value in below.items():
        yield from _leaves(value, (*above, key))


def _has(owned: Object, fields: Fields) -> bool:
    for field in fields:
        if field not in owned:
            return False
        owned = owned[field]
    return True


def printable(text: str, longest: int = LONGEST_VALUE) -> str:
    """Replace unprintable characters: PostgreSQL stores no NUL, and a direction mark could reverse a page's text."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text[:longest])


def _spelled(field: str) -> str:
    kind, _, rest = field.partition(":")
    if kind == "k":
        return f"[{', '.join(f'{key}={value}' for key, value in _key(rest).items())}]"
    return f"[{rest}]" if kind in ("v", "i") else f".{rest}"


def pointer_to(body: Any, fields: Fields) -> list[str | int] | None:
    """Return the steps to the field in the object; None if it is not there."""
    steps: list[str | int] = []
    for field in fields:
        kind, _, rest = field.partition(":")
        step = _index(body, kind, rest) if isinstance(body, list) else _member(body, rest)
        if step is None:
            return None
        steps.append(step)
        body = getitem(body, step)
    return steps


def value_at(body: Any, fields: Fields) -> Any:
    if (steps := pointer_to(body, fields)) is None:
        return None
    return _follow(body, steps)


def removals(wanted: Object, found: Sequence[Difference], body: Object) -> list[dict[str, Any]]:
    """Return a JSON patch that removes values of others where Berth wants none. It removes the highest field only, and
    the last entry of a list first, so that indexes stay valid. Each removal first tests that the value is unchanged."""
    pointers: set[tuple[str | int, ...]] = set()
    for difference in found:
        for length in range(1, len(difference.fields) + 1):
            fields = difference.fields[:length]
            if pointer_to(wanted, fields) is None and (steps := pointer_to(body, fields)) is not None:
                pointers.add(tuple(steps))
                break
    ordered = sorted(pointers, key=lambda steps: [f"{s:06}" if isinstance(s, int) else s for s in steps])
    operations = []
    for pointer in reversed(ordered):
        path = "".join(f"/{_escaped(str(step))}" for step in pointer)
        operations.append({"op": "test", "path": path, "value": _follow(body, pointer)})
        operations.append({"op": "remove", "path": path})
    return operations


def _follow(body: Any, steps: Sequence[str | int]) -> Any:
    return reduce(getitem, steps, body)


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


def _member(body: Any, name: str) -> str | None:
    return name if isinstance(body, Mapping) and name in body else None


def _index(entries: Sequence[Any], kind: str, rest: str) -> int | None:
    if kind == "k":
        key = _key(rest)
        named = (isinstance(entry, Mapping) and key.items() <= entry.items() for entry in entries)
        return next((n for n, is_named in enumerate(named) if is_named), None)
    if kind == "v":
        return next((n for n, entry in enumerate(entries) if entry == json.loads(rest)), None)
    return int(rest) if kind == "i" and 0 <= int(rest) < len(entries) else None


def _key(text: str) -> dict[str, Any]:
    key: dict[str, Any] = json.loads(text)
    return key
