"""Merge patch, JSON patch and strategic merge patch."""

from collections.abc import Callable
from typing import Any

from devcluster.errors import ApiError, bad_request
from devcluster.schema import SETS, strategic_key
from devcluster.store import clone


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return clone(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def strategic_patch(target: Any, patch: Any, name: str = "") -> Any:
    """Merge patch whose keyed lists merge by key; knows $patch, $retainKeys and deleteFromPrimitiveList."""
    if isinstance(patch, dict):
        return _strategic_map(target if isinstance(target, dict) else {}, patch)
    if isinstance(patch, list):
        return _strategic_list(target if isinstance(target, list) else [], patch, name)
    return patch


def _strategic_map(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if patch.get("$patch") == "replace":
        return {k: clone(v) for k, v in patch.items() if k != "$patch"}
    result = dict(target)
    if keep := patch.get("$retainKeys"):
        result = {k: v for k, v in result.items() if k in keep}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            field = key.partition("/")[2]
            result[field] = [v for v in result.get(field) or [] if v not in value]
        elif key.startswith("$"):
            continue
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = strategic_patch(result.get(key), value, key)
    return result


def _strategic_list(target: list[Any], patch: list[Any], name: str) -> list[Any]:
    if name in SETS:
        return target + [v for v in patch if v not in target]
    items = [i for i in patch if not (isinstance(i, dict) and i.get("$patch") == "replace" and len(i) == 1)]
    key = strategic_key(name, target + items)
    if not key or len(items) != len(patch):
        return [strategic_patch(None, i) for i in items]
    result = list(target)
    for item in items:
        at = next((n for n, old in enumerate(result) if old.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            result = [old for old in result if old.get(key) != item.get(key)]
        elif at is None:
            result.append(strategic_patch(None, item))
        else:
            result[at] = strategic_patch(result[at], item)
    return result


def json_patch(target: Any, patch: Any) -> Any:
    """RFC 6902."""
    if not isinstance(patch, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        )
    result = clone(target)
    for step in patch:
        try:
            result = _step(result, step)
        except (KeyError, IndexError, ValueError, TypeError, AssertionError) as error:
            message = "the server rejected our request due to an error in our request"
            raise ApiError(422, "Invalid", message, {}) from error
    return result


def _step(doc: Any, step: dict[str, Any]) -> Any:
    op, path = step["op"], step["path"]
    if op in ("copy", "move"):
        value = clone(_read(doc, step["from"]))
        if op == "move":
            doc = _write(doc, step["from"], "remove", None)
        return _write(doc, path, "add", value)
    if op == "test":
        assert _read(doc, path) == step.get("value")
        return doc
    if op not in ("add", "remove", "replace"):
        raise ValueError(op)
    return _write(doc, path, op, clone(step.get("value")))


def _pointer(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise ValueError(path)
    return [p.replace("~1", "/").replace("~0", "~") for p in path.split("/")[1:]]


def _read(doc: Any, path: str) -> Any:
    for part in _pointer(path):
        doc = doc[int(part)] if isinstance(doc, list) else doc[part]
    return doc


def _write(doc: Any, path: str, op: str, value: Any) -> Any:
    parts = _pointer(path)
    if not parts:
        return value
    parent = _read(doc, "".join(f"/{p.replace('~', '~0').replace('/', '~1')}" for p in parts[:-1]))
    last = parts[-1]
    if isinstance(parent, list):
        at = len(parent) if last == "-" else int(last)
        if op == "add":
            parent.insert(at, value)
        elif op == "remove":
            del parent[at]
        else:
            parent[at] = value
        return doc
    if op != "add":
        parent[last]
    if op == "remove":
        del parent[last]
    else:
        parent[last] = value
    return doc


BY_CONTENT_TYPE: dict[str, Callable[[Any, Any], Any]] = {
    "application/merge-patch+json": merge_patch,
    "application/json-patch+json": json_patch,
    "application/strategic-merge-patch+json": strategic_patch,
}
