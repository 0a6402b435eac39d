"""Parsing of requests: the object of the path, the options of the query, the body."""

import json
from dataclasses import dataclass
from typing import Any

import yaml
from aiohttp import web

from devcluster import resources
from devcluster.access.rbac import Ask
from devcluster.api import DeleteOptions, Writer
from devcluster.errors import ApiError, bad_request
from devcluster.resources import NAMESPACE, Kind, Obj
from devcluster.serving import protobuf
from devcluster.serving.decoding import members, no_json
from devcluster.values.selectors import Match, field_selector, label_selector


@dataclass(frozen=True)
class Target:
    """Object or collection that a path names."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Query(dict[str, str]):
    def flag(self, name: str) -> bool:
        return self.get(name, "") in ("true", "1")

    def number(self, name: str) -> int | None:
        text = self.get(name)
        return int(text) if text else None


def target(path: str) -> Target | None:
    """Parse `/api/v1/…` and `/apis/GROUP/VERSION/…`; return None for other paths."""
    parts = [p for p in path.split("/") if p]
    if parts[:1] == ["api"] and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if (
        rest[0] == "namespaces"
        and len(rest) > 2
        and not (len(rest) == 3 and rest[2] in NAMESPACE.subresources)
    ):
        namespace, rest = rest[1], rest[2:]
    kind = resources.kind_at(group, version, rest[0])
    if kind is None or len(rest) > 3 or (kind.namespaced and len(rest) > 1 and not namespace):
        return None
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in kind.subresources:
        return None
    return Target(kind, namespace, rest[1] if len(rest) > 1 else "", subresource)


def asked(method: str, path: str, query: Query) -> Ask:
    """Return the request as rules see it: by its form alone, even if there is no such resource."""
    parts = [p for p in path.split("/") if p]
    verb = {"POST": "create", "PUT": "update", "GET": "get", "HEAD": "get"}.get(method, method.lower())
    if parts[:1] == ["api"] and len(parts) >= 3:
        group, rest = "", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 4:
        group, rest = parts[1], parts[3:]
    else:
        return Ask(method.lower(), path=path)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in NAMESPACE.subresources:
            rest = rest[2:]
    resource, name, subresource = (*rest, "", "")[:3]
    if not name and verb in ("get", "delete"):
        many = "watch" if query.flag("watch") else "list"
        verb = many if verb == "get" else "deletecollection"
        name = _named(query)
    return Ask(verb, group, resource, subresource, namespace, name)


def _named(query: Query) -> str:
    """Return the name that a selector asks for, if it asks for one name only."""
    key, _, name = query.get("fieldSelector", "").partition("=")
    return name if key == "metadata.name" and "," not in name else ""


def verb_of(request: web.Request, at: Target, query: Query) -> str:
    if request.method == "GET":
        if at.name:
            return "get"
        return "watch" if query.flag("watch") else "list"
    if request.method == "DELETE":
        return "delete" if at.name else "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(request.method, request.method.lower())


def resource_of(at: Target) -> str:
    return f"{at.kind.plural}/{at.subresource}" if at.subresource else at.kind.plural


def match_of(at: Target, query: Query) -> Match:
    by_label = label_selector(query.get("labelSelector", ""))
    by_field = field_selector(at.kind, query.get("fieldSelector", ""))
    return lambda o: by_label(o) and by_field(o)


def writer_of(request: web.Request, at: Target, query: Query) -> Writer:
    agent = request.headers.get("User-Agent", "").split("/")[0] or "unknown"
    dry_run = query.get("dryRun", "")
    if dry_run not in ("", "All"):
        raise bad_request(f'dryRun: Unsupported value: "{dry_run}": supported values: "All"')
    return Writer(query.get("fieldManager") or agent, dry_run == "All", at.subresource, request["user"])


def delete_options(body: Obj, query: Query) -> DeleteOptions:
    preconditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds", query.number("gracePeriodSeconds"))
    dry_run = query.get("dryRun") or (body.get("dryRun") or [""])[0]
    return DeleteOptions(
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        grace_seconds=grace,
        propagation=body.get("propagationPolicy") or query.get("propagationPolicy", ""),
        dry_run=dry_run == "All",
        orphan=body.get("orphanDependents"),
    )


async def read_body(
    request: web.Request, kind: Kind | None = None, optional: bool = False, as_yaml: bool = False
) -> Any:
    raw = await request.read()
    if not raw and optional:
        return {}
    content_type = request.content_type if "Content-Type" in request.headers else "application/json"
    if as_yaml or content_type == "application/yaml":
        try:
            return yaml.load(raw, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
        except yaml.YAMLError as error:
            raise bad_request(f"error decoding YAML: {error}") from error
    if content_type == protobuf.CONTENT_TYPE:
        return protobuf.decode(raw)
    if not content_type.endswith("json"):
        told = f"accepted media types include: application/json, application/yaml, {protobuf.CONTENT_TYPE}"
        message = f"the body of the request was in an unknown format - {told}"
        raise ApiError(415, "UnsupportedMediaType", message)
    try:
        return json.loads(raw, object_pairs_hook=members)
    except ValueError as error:
        raise bad_request(no_json(raw, error, kind.kind if kind else "Object")) from error
