"""Fields of an answer that others write while requests are replayed: the comparison leaves them out, on both sides.

An object's managedFields name the owner of each field. The rest of the status is compared, and so is what the same
owners wrote outside of the status.
"""

import json
from collections.abc import Iterator
from functools import reduce
from typing import Any

Json = Any
Fields = dict[str, Any]

CONTROLLERS = frozenset({"kube-controller-manager"})
_SCRIPT = "Python"
"""The recording's nodes and load balancers were played by a script under this name."""
_PLAYED = CONTROLLERS | {_SCRIPT, "kubelet"}
_COUNTED: Fields = {"f:status": {"f:replicas": {}}}
"""What a Scale shows of its workload's status; it has no managedFields to say so."""


def unplayed(recorded: Json, given: Json) -> tuple[Json, Json]:
    """Return both, without what scripts, kubelets and controllers own in the status if a script wrote the record."""
    if not any(entry.get("manager") == _SCRIPT for entry in _of_status(recorded)):
        return recorded, given
    return without(recorded, given, _PLAYED)


def without(recorded: Json, given: Json, managers: frozenset[str]) -> tuple[Json, Json]:
    """Return both without what these managers own in the status of either."""
    entries = [e for e in (*_of_status(recorded), *_of_status(given)) if e.get("manager") in managers]
    owned = [entry["fieldsV1"] for entry in entries]
    if "Scale" in (_kind(recorded), _kind(given)):
        owned.append(_COUNTED)
    if not owned:
        return recorded, given
    fields = reduce(_union, owned)
    return _less(recorded, fields, managers), _less(given, fields, managers)


def telling(events: list[Json]) -> Iterator[Json]:
    """Yield a watch's events, without changes to simulated fields alone and without periodic bookmarks."""
    last: dict[str, Json] = {}
    for event in events:
        shown = event.get("object", {})
        if event.get("type") == "BOOKMARK" and "annotations" not in shown.get("metadata", {}):
            continue  # the bookmark that ends the initial events has an annotation
        name = shown.get("metadata", {}).get("name", "")
        if event.get("type") == "MODIFIED" and name in last:
            before, now = without(last[name], shown, _PLAYED)
            if before == now:
                continue
        last[name] = shown
        yield event


def _kind(value: Json) -> Json:
    return value.get("kind") if isinstance(value, dict) else None


def _managed(value: Json) -> list[Json]:
    meta = value.get("metadata") if isinstance(value, dict) else None
    return list(meta.get("managedFields", [])) if isinstance(meta, dict) else []


def _of_status(value: Json) -> list[Json]:
    return [entry for entry in _managed(value) if entry.get("subresource") == "status"]


def _union(some: Fields, more: Fields) -> Fields:
    if not some or not more:
        return {}  # the whole field, whatever is in it
    both = {name: _union(some[name], more[name]) for name in some.keys() & more.keys()}
    return some | more | both


def _less(value: Json, fields: Fields, managers: frozenset[str]) -> Json:
    entries = _managed(value)
    played = [e for e in _of_status(value) if e.get("manager") in managers]
    left = _left(value, fields)
    if entries:
        left["metadata"] = left["metadata"] | {"managedFields": [e for e in entries if e not in played]}
    return left


def _left(value: Json, fields: Fields) -> Json:
    """Return a value without the fields, which are in the shape of FieldsV1."""
    if isinstance(value, dict):
        parts = [(name, part, fields.get(f"f:{name}")) for name, part in value.items()]
        return {name: _part(part, own) for name, part, own in parts if not _goes(part, own)}
    if isinstance(value, list):
        items = [(item, _of_item(item, fields)) for item in value]
        return [_part(item, own) for item, own in items if not _goes(item, own)]
    return value


def _part(value: Json, own: Fields | None) -> Json:
    return value if own is None else _left(value, own)


def _goes(value: Json, own: Fields | None) -> bool:
    return own is not None and (not own or ("." in own and not _left(value, own)))


def _of_item(item: Json, fields: Fields) -> Fields | None:
    for name, own in fields.items():
        if name.startswith("k:") and isinstance(item, dict):
            key = json.loads(name[2:])
            if key.items() <= item.items():
                return dict(own)
    return None
