"""OpenAPI v3 documents, made from the types: for `kubectl explain`, and so that clients leave validation to us."""

from collections.abc import Iterable
from typing import Any

from devcluster import resources
from devcluster.resources import Kind, Obj
from devcluster.typed.schema import Field, described

_SCALARS: dict[str, Obj] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
}
_NAMED: dict[str, tuple[str, Obj]] = {
    "Quantity": ("api.resource.Quantity", {"oneOf": [{"type": "string"}, {"type": "number"}]}),
    "IntOrString": (
        "util.intstr.IntOrString",
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    "Time": ("apis.meta.v1.Time", {"type": "string", "format": "date-time"}),
    "MicroTime": ("apis.meta.v1.MicroTime", {"type": "string", "format": "date-time"}),
}
_ELSEWHERE = "Its fields and their types are those of Kubernetes 1.36, whose reference says what they mean."


def index() -> Obj:
    versions = dict.fromkeys(k.api_version for k in (*resources.KINDS, *resources.REVIEWS))
    roots = [f"apis/{v}" if "/" in v else f"api/{v}" for v in versions]
    return {"paths": {r: {"serverRelativeURL": f"/openapi/v3/{r}"} for r in roots}}


def document(api_version: str) -> Obj:
    """Return the document of one group version: its kinds' schemas, and that their patches are validated here."""
    kinds = [k for k in resources.KINDS if k.api_version == api_version]
    schemas: dict[str, Obj] = {}
    for kind in kinds:
        if field := described(api_version, kind.kind):
            _collect(field, schemas)
            about = {"x-kubernetes-group-version-kind": [_gvk(kind)], "description": _ELSEWHERE}
            schemas[_name(field)] = schemas[_name(field)] | about
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": dict(_paths(kinds)),
        "components": {"schemas": schemas},
    }


def _paths(kinds: Iterable[Kind]) -> Iterable[tuple[str, Obj]]:
    for kind in kinds:
        scope = "/namespaces/{namespace}" if kind.namespaced else ""
        root = "apis" if kind.group else "api"
        validation = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
        patch = {"parameters": [validation], "x-kubernetes-action": "patch"}
        patch["x-kubernetes-group-version-kind"] = _gvk(kind)
        yield f"/{root}/{kind.api_version}{scope}/{kind.plural}/{{name}}", {"patch": patch}


def _gvk(kind: Kind) -> Any:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _name(field: Field) -> str:
    package = "io.k8s.apimachinery.pkg.apis" if field.struct.startswith("meta.") else "io.k8s.api"
    return f"{package}.{field.struct}"


def _collect(field: Field, schemas: dict[str, Obj]) -> Obj:
    """Return the schema of a field; add the schemas that it refers to to `schemas`."""
    if field.shape in _SCALARS:
        return dict(_SCALARS[field.shape])
    if field.shape in _NAMED:
        short, schema = _NAMED[field.shape]
        name = f"io.k8s.apimachinery.pkg.{short}"
        schemas[name] = schema
        return _reference(name)
    if field.item:
        items = _collect(field.item, schemas)
        return {"type": "array", "items": items} if field.shape == "list" else _map_of(items)
    if not field.struct:
        return {"type": "object"}
    name = _name(field)
    if name not in schemas:
        schemas[name] = schema = {"type": "object"}
        schema["properties"] = {k: _merging(f) | _collect(f, schemas) for k, f in field.fields.items()}
        if needed := [k for k, f in field.fields.items() if f.required]:
            schema["required"] = needed
    return _reference(name)


def _reference(name: str) -> Obj:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}]}


def _map_of(items: Obj) -> Obj:
    return {"type": "object", "additionalProperties": items}


def _merging(field: Field) -> Obj:
    """Return how the field merges, as extensions of OpenAPI."""
    if field.shape != "list":
        return {"x-kubernetes-map-type": "atomic"} if field.atomic else {}
    kind = "map" if field.keys else "set" if field.is_set else "atomic"
    found: Obj = {"x-kubernetes-list-type": kind}
    if field.keys:
        found["x-kubernetes-list-map-keys"] = list(field.keys)
    if field.merges:
        strategy = ["merge"] + ["retainKeys"] * field.retains_keys
        found |= {"x-kubernetes-patch-strategy": ",".join(strategy)}
        found |= {"x-kubernetes-patch-merge-key": field.merge_key} if field.merge_key else {}
    return found
