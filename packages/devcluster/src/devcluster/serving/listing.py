"""Lists: as they are now or as they were at a resourceVersion, whole or page by page.

A page's continue token holds the resourceVersion at which the first page was read and the next key, so that all pages
show one moment while the store still has its history.
"""

import base64
import json
from typing import Any

from devcluster.errors import ApiError, bad_request
from devcluster.resources import Kind, Obj
from devcluster.serving.requests import Query
from devcluster.store import Store, Stored, encode
from devcluster.values.selectors import Match

_TOKEN_VERSION = "meta.k8s.io/v1"  # noqa: S105
_LIST_IS_OLD = "The resourceVersion for the provided list is too old."
_PAGE_IS_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without"
    " the continue parameter, or use the continue token in this response to retrieve the remainder of the results."
    " Continuing with the provided token results in an inconsistent list - objects that were created, modified, or"
    " deleted between the time the first chunk was returned and now may show up in the list."
)


def read_list(
    store: Store, kind: Kind, namespace: str, match: Match, query: Query
) -> tuple[list[Stored], Obj]:
    """Return the items that a list's query asks for, and the list's metadata."""
    token, limit = query.get("continue", ""), max(query.number("limit") or 0, 0)
    rv, start = _continued(token, query) if token else (_asked(store, query, limit), "")
    items = _as_of(store, kind, namespace, rv if rv > 0 else store.rv, start)
    found = [s for s in items if (not start or _key(namespace, s.obj) >= start) and match(s.obj)]
    meta: Obj = {"resourceVersion": str(rv if rv > 0 else store.rv)}
    if limit and len(found) > limit:
        after = _key(namespace, found[limit - 1].obj) + "\0"
        meta["continue"] = _token(int(meta["resourceVersion"]), after)
        if not query.get("labelSelector") and not query.get("fieldSelector"):
            meta["remainingItemCount"] = len(found) - limit
        found = found[:limit]
    return found, meta


def number_of(query: Query) -> int:
    """Return the resourceVersion that a request names; 0 for none."""
    asked = query.get("resourceVersion", "")
    if asked and not asked.isdigit():
        parse = f'strconv.ParseUint: parsing "{asked}": invalid syntax'
        raise ApiError(500, "", f'resourceVersion: Invalid value: "{asked}": {parse}')
    return int(asked or 0)


def check_version(store: Store, asked: int) -> None:
    """Refuse a resourceVersion that does not exist yet."""
    if asked > store.rv:
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        message = f"Timeout: Too large resource version: {asked}, current: {store.rv}"
        raise ApiError(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})


def _asked(store: Store, query: Query, limit: int) -> int:
    """Return the resourceVersion at which to read the list; 0 for the present."""
    try:
        rv = number_of(query)
    except ApiError as error:
        raise bad_request(f"invalid resource version: {error}") from error
    check_version(store, rv)
    return rv if query.get("resourceVersionMatch", "Exact" if limit else "") == "Exact" else 0


def _as_of(store: Store, kind: Kind, namespace: str, rv: int, start: str) -> list[Stored]:
    """Return the objects stored at `rv`: the present ones with all later changes undone."""
    if rv == store.rv:
        return list(store.stored(kind, namespace))
    try:
        changes = store.since(rv)
    except ApiError as error:
        refusal = ApiError(410, "Expired", _PAGE_IS_OLD if start else _LIST_IS_OLD)
        if start:
            refusal.metadata = {"continue": _token(-1, start)}
        raise refusal from error
    found = {_key("", s.obj): s for s in store.stored(kind, namespace)}
    for change in reversed(changes):
        if change.kind is not kind or (namespace and change.obj["metadata"]["namespace"] != namespace):
            continue
        if change.old is None:
            del found[_key("", change.obj)]
        else:
            found[_key("", change.old)] = Stored(change.old, encode(change.old))
    return [found[key] for key in sorted(found)]


def _key(namespace: str, obj: Obj) -> str:
    """Return the sort key of lists; within a namespace, the name alone."""
    meta = obj["metadata"]
    space = meta.get("namespace", "")
    return f"/{meta['name']}" if namespace or not space else f"/{space}/{meta['name']}"


def _token(rv: int, start: str) -> str:
    content = json.dumps({"v": _TOKEN_VERSION, "rv": rv, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def _continued(token: str, query: Query) -> tuple[int, str]:
    if query.get("resourceVersion", "0") != "0":
        raise bad_request("specifying resource version is not allowed when using continue")
    content = _decoded(token)
    if content.get("v") != _TOKEN_VERSION:
        raise _broken(f"server does not recognize this encoded version {content.get('v')}")
    if not content.get("rv") or not content.get("start"):
        raise _broken(f"incorrect encoded start resourceVersion (version {_TOKEN_VERSION})")
    return int(content["rv"]), str(content["start"])


def _decoded(token: str) -> dict[str, Any]:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError as error:
        raise _broken("illegal base64 data at input byte 0") from error
    try:
        return dict(json.loads(raw))
    except ValueError as error:
        first = chr(raw[0]) if raw else ""
        shown = first if first.isprintable() else f"\\u{ord(first or ' '):04x}"
        raise _broken(f"invalid character '{shown}' looking for beginning of value") from error


def _broken(why: str) -> ApiError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")
