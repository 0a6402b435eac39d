"""Bodies of writes: read as objects of the kind that the path names, or refused in Go's words."""

import json
from typing import Any

from devcluster import resources
from devcluster.errors import ApiError, bad_request
from devcluster.resources import Kind, Obj
from devcluster.rules.metadata import same_namespace
from devcluster.serving import decoding
from devcluster.serving.decoding import Unreadable
from devcluster.serving.requests import Query, Target
from devcluster.typed import fields, patches
from devcluster.typed.schema import root

Warnings = list[str]
_EVENTS = "events.k8s.io/v1"
_SCHEME = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'


def written(at: Target, body: Any, query: Query) -> tuple[Obj, Warnings]:
    """Return the object of a POST or a PUT."""
    kind = at.kind
    if not isinstance(body, dict):
        struct = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
        what = decoding.JSON_KINDS.get(type(body), "null")
        why = f"json: cannot unmarshal {what} into Go value of type {struct}"
        raise bad_request(
            decoding.unrecognized(kind.kind, why, json.dumps(body, separators=(",", ":")).encode())
        )
    given = str(body.get("kind") or kind.kind), str(body.get("apiVersion") or kind.api_version)
    what = f'{given[0]} in version "{given[1].rpartition("/")[2]}" cannot be handled as a {kind.kind}'
    if why := _other_kind(kind, *given):
        raise bad_request(f"{what}: {why}")
    try:
        found, warnings = _read(kind, body, query)
    except Unreadable as error:
        raise bad_request(f"{what}: {error}") from error
    if at.name:
        _same_name(found, at.name)
    return found, warnings


def patched(at: Target, content_type: str, patch: Any, old: Obj, query: Query) -> tuple[Obj, Warnings]:
    """Return the object that a patch makes of `old`."""
    made = patches.patcher(at.kind, content_type, patch)(old)
    if why := _other_kind(at.kind, made.get("kind", ""), made.get("apiVersion", "")):
        raise patches.unreadable(content_type, patch, made, why)
    try:
        new, warnings = _read(at.kind, made, query)
    except Unreadable as error:
        raise patches.unreadable(content_type, patch, made, error) from error
    same_namespace(new["metadata"], at.namespace)
    _same_name(new, at.name)
    return new, warnings


def applied(at: Target, body: Any) -> Obj:
    """Return the configuration of a server-side apply."""
    kind = at.kind
    if not isinstance(body, dict) or (body.get("apiVersion"), body.get("kind")) != (
        kind.api_version,
        kind.kind,
    ):
        given = body if isinstance(body, dict) else {}
        raise bad_request(f"invalid object type: {_gvk(given.get('apiVersion', ''), given.get('kind', ''))}")
    if not isinstance(body.get("metadata", {}), dict):
        body = body | {"metadata": {}}
    try:
        fields.check_declared(root(kind), body)
    except ValueError as error:
        what = f"(/{at.name}; {_gvk(kind.api_version, kind.kind)})"
        raise ApiError(500, "", f"failed to create typed patch object {what}: {error}") from error
    return dict(body)


def _read(kind: Kind, body: Obj, query: Query) -> tuple[Obj, Warnings]:
    """Read an object. Drop fields that the kind does not have with a warning, or refuse them where strict."""
    found, faults = decoding.read(kind, body)
    found.setdefault("metadata", {})
    validation = query.get("fieldValidation", "")
    if faults and validation == "Strict":
        raise Unreadable(f"strict decoding error: {', '.join(faults)}")
    return found, [] if validation == "Ignore" else faults


def _other_kind(kind: Kind, given: str, version: str) -> str:
    """Return why a body of another kind does not fit this one; empty if the kinds match."""
    if given == kind.kind and version in (kind.api_version, _EVENTS):
        return ""
    if resources.kind_of(version, given) is None:
        return f'no kind "{given}" is registered for version "{version}" {_SCHEME}'
    core = f"core.{kind.kind}" if not kind.group else f"{kind.group.split('.')[0]}.{kind.kind}"
    group = version.rpartition("/")[0].split(".")[0]
    source = f"{group or 'v1'}.{given}" if not kind.group else f"v1.{given}"
    return f"converting ({source}) to ({core}): unknown conversion"


def _gvk(version: str, kind: str) -> str:
    return f"{version if '/' in version else '/' + version}, Kind={kind}"


def _same_name(obj: Obj, name: str) -> None:
    given = obj["metadata"].get("name")
    if not given:
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
