"""Merge patch, JSON patch and strategic merge patch."""

import json
from collections.abc import Callable
from typing import Any

from devcluster.errors import ApiError, bad_request
from devcluster.resources import Kind, Obj
from devcluster.serving.decoding import JSON_KINDS, Unreadable
from devcluster.store import clone
from devcluster.typed.gotext import go_text
from devcluster.typed.schema import Field, root


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return clone(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def strategic_patch(field: Field | None, target: Any, patch: Any) -> Any:
    """Apply a merge patch whose lists merge as their field says, with the directives that kubectl sends."""
    if isinstance(patch, dict):
        return _strategic_map(field, target if isinstance(target, dict) else {}, patch)
    if isinstance(patch, list) and field and field.merges:
        return _strategic_list(field, target if isinstance(target, list) else [], patch)
    return clone(patch)


def _strategic_map(field: Field | None, target: Obj, patch: Obj) -> Obj:
    directive = patch.get("$patch", "merge")
    if directive not in ("merge", "replace", "delete"):
        raise _unknown_directive(patch)
    if directive != "merge":
        return {k: clone(v) for k, v in patch.items() if k != "$patch"} if directive == "replace" else {}
    keep = patch.get("$retainKeys")
    result = {k: v for k, v in target.items() if keep is None or k in keep}
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            result.pop(key, None)
        else:
            result[key] = strategic_patch(field.child(key) if field else None, result.get(key), value)
    for key, value in patch.items():
        directive, _, name = key.partition("/")
        if directive == "$deleteFromPrimitiveList":
            result[name] = [v for v in result.get(name) or [] if v not in value]
        elif directive == "$setElementOrder" and isinstance(result.get(name), list):
            below = field.child(name) if field else None
            result[name] = _ordered(result[name], value, below.merge_key if below else "")
    return result


def _strategic_list(field: Field, target: list[Any], patch: list[Any]) -> list[Any]:
    key = field.merge_key
    if not key:
        return target + [v for v in patch if v not in target]
    replacing = any(item == {"$patch": "replace"} for item in patch)
    result = [] if replacing else list(target)
    for item in patch:
        if replacing and "$patch" in item:
            continue
        if key not in item:
            raise ApiError(500, "", f"map: {go_text(item)} does not contain declared merge key: {key}")
        at = next((n for n, old in enumerate(result) if old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            result = [old for old in result if old.get(key) != item[key]]
        elif at is None:
            result.append(strategic_patch(field.item, None, item))
        else:
            result[at] = strategic_patch(field.item, result[at], item)
    return result


def _ordered(items: list[Any], wanted: list[Any], key: str) -> list[Any]:
    """Return the items in the client's order; items that the client does not know stay after their neighbours."""

    def name(item: Any) -> Any:
        return item.get(key) if isinstance(item, dict) else item

    order = [name(w) for w in wanted]
    result = sorted((i for i in items if name(i) in order), key=lambda i: order.index(name(i)))
    for n, item in enumerate(items):
        if name(item) not in order:
            before = [result.index(i) for i in items[:n] if i in result]
            result.insert(max(before, default=-1) + 1, item)
    return result


def _unknown_directive(patch: Obj) -> ApiError:
    return ApiError(500, "", f"unknown patch type: {patch['$patch']} in map: {go_text(patch)}")


def json_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON patch (RFC 6902)."""
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
    if op == "remove":
        del parent[last]
    else:
        parent[last] = value
    return doc


MERGE, JSON = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def patcher(kind: Kind, content_type: str, patch: Any) -> Callable[[Obj], Obj]:
    """Return the function that makes the new object of the old; refuse a patch of the wrong shape."""
    go, wanted = ("[]handlers.jsonPatchOp", "array") if content_type == JSON else (_MAP, "object")
    what = JSON_KINDS.get(type(patch), "null")
    if what != wanted:
        words = f"json: cannot unmarshal {what} into Go value of type {go}"
        raise bad_request(words if content_type == STRATEGIC else f"error decoding patch: {words}")
    if content_type == STRATEGIC:
        return lambda old: strategic_patch(root(kind), old, patch)
    return lambda old: (json_patch if content_type == JSON else merge_patch)(old, patch)


_MAP = "map[string]interface {}"


def check_type(content_type: str) -> None:
    if content_type not in (MERGE, JSON, STRATEGIC):
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def unreadable(content_type: str, patch: Any, made: Obj, fault: Unreadable | str) -> ApiError:
    """Return the refusal of a patch whose result is no object of its kind."""
    if content_type == STRATEGIC:
        shown, why = go_text(patch), fault if isinstance(fault, str) else fault.restored
    else:
        shown, why = json.dumps(made, separators=(",", ":"), ensure_ascii=False), str(fault)
    words = f"Invalid value: {json.dumps(shown, ensure_ascii=False)}: {why}"
    cause = {"reason": "FieldValueInvalid", "message": words, "field": "patch"}
    return ApiError(422, "Invalid", f' "" is invalid: patch: {words}', {"causes": [cause]})
