"""Forms of objects in answers: whole, as lists, as tables for kubectl, or as metadata alone."""

from collections.abc import Iterable
from typing import Any

from devcluster.display import tables
from devcluster.resources import Kind, Obj
from devcluster.store import encode


def typed(kind: Kind, obj: Obj) -> Obj:
    return {"kind": kind.kind, "apiVersion": kind.api_version, **obj}


def typed_json(kind: Kind, encoded: bytes) -> bytes:
    """Add kind and version to an object that is already JSON."""
    return b'{"kind":"%b","apiVersion":"%b",%b' % (kind.kind.encode(), kind.api_version.encode(), encoded[1:])


def object_list(kind: Kind, items: Iterable[bytes], metadata: Obj) -> bytes:
    """Join the items' JSON to a list."""
    head = encode({"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": metadata})
    return b'%b,"items":[%b]}\n' % (head[:-1], b",".join(items))


def metadata_only(obj: Obj) -> Obj:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def metadata_list(items: list[Obj], metadata: Obj) -> Obj:
    head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
    return {**head, "metadata": metadata, "items": [metadata_only(o) for o in items]}


def table(kind: Kind, items: Iterable[Obj], metadata: Obj) -> Obj:
    rows = [{"cells": tables.cells(kind, o), "object": metadata_only(o)} for o in items]
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return {**head, "columnDefinitions": tables.columns(kind), "rows": rows}


def dump(body: Any) -> bytes:
    return encode(body) + b"\n"
