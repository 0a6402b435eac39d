"""metrics.k8s.io, as metrics-server serves it: read only, computed for each request, and stored nowhere."""

from aiohttp import web

from devcluster.errors import ApiError, method_not_allowed, no_such_resource, not_found
from devcluster.metering import Figures, Measured, Metering
from devcluster.resources import NODE, POD, Kind, Obj, group_entry
from devcluster.serving.requests import Query
from devcluster.serving.responses import as_json
from devcluster.serving.views import metadata_only
from devcluster.store import Store
from devcluster.values.clock import now
from devcluster.values.quantity import show
from devcluster.values.selectors import field_selector, label_selector

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"
ROOT = f"/apis/{GROUP}"
_PODS = Kind(GROUP, VERSION, "PodMetrics", "pods")
_NODES = Kind(GROUP, VERSION, "NodeMetrics", "nodes", namespaced=False)
_OBJECTS = {_PODS: POD, _NODES: NODE}
_COLUMNS = (("Name", "name"), ("cpu", "quantity"), ("memory", "quantity"), ("Window", "duration"))


class Metrics:
    def __init__(self, store: Store, metering: Metering):
        self._store, self._metering = store, metering

    def serves(self, path: str) -> bool:
        return path == ROOT or path.startswith(f"{ROOT}/")

    @property
    def groups(self) -> list[Obj]:
        """Entries for the list of API groups."""
        return [] if self._metering.state == "absent" else [group_entry(GROUP, VERSION)]

    def answer(self, request: web.Request, query: Query) -> web.StreamResponse:
        if self._metering.state == "absent":
            return web.Response(text="404 page not found\n", status=404)
        if self._metering.state == "unavailable":
            raise ApiError(503, "ServiceUnavailable", "the server is currently unable to handle the request")
        parts = request.path.removeprefix(ROOT).strip("/").split("/")
        if parts in ([""], [VERSION]):
            return as_json(_discovery(parts[0]))
        if parts[0] != VERSION:
            return web.Response(text="404 page not found\n", status=404)
        kind, namespace, name = _named(parts[1:])
        if request.method not in ("GET", "HEAD") or query.flag("watch"):
            raise method_not_allowed()
        table = "as=Table" in request.headers.get("Accept", "")
        if name:
            found = self._one(kind, namespace, name)
            return as_json(_table([found]) if table else _typed(kind, found))
        items = self._many(kind, namespace, query)
        if table:
            return as_json(_table(items))
        return as_json({"kind": kind.list_kind, "apiVersion": API_VERSION, "metadata": {}, "items": items})

    def _one(self, kind: Kind, namespace: str, name: str) -> Obj:
        obj = self._store.get(_OBJECTS[kind], namespace, name)
        if obj is None:
            raise not_found(_OBJECTS[kind], name)
        if told := self._told(kind, obj):
            return told
        raise not_found(kind, f"{namespace}/{name}" if namespace else name)

    def _many(self, kind: Kind, namespace: str, query: Query) -> list[Obj]:
        by_label = label_selector(query.get("labelSelector", ""))
        by_field = field_selector(kind, query.get("fieldSelector", ""))
        objects = self._store.all(_OBJECTS[kind], namespace)
        return [told for o in objects if by_label(o) and by_field(o) and (told := self._told(kind, o))]

    def _told(self, kind: Kind, obj: Obj) -> Obj | None:
        if kind is _PODS:
            return _of_pod(obj, measured) if (measured := self._metering.of_pod(obj)) else None
        figures = self._metering.of_node(obj["metadata"]["name"])
        return _head(obj, figures) | {"usage": _usage(figures)} if figures else None


def _named(parts: list[str]) -> tuple[Kind, str, str]:
    """Return kind, namespace and name that a path asks for."""
    match parts:
        case ["nodes", *name] if len(name) < 2:
            return _NODES, "", "".join(name)
        case ["pods"]:
            return _PODS, "", ""
        case ["namespaces", namespace, "pods", *name] if len(name) < 2:
            return _PODS, namespace, "".join(name)
    raise no_such_resource()


def _discovery(version: str) -> Obj:
    if not version:
        return {"kind": "APIGroup", "apiVersion": "v1", **group_entry(GROUP, VERSION)}
    entries = [
        {"name": kind.plural, "singularName": "", "namespaced": kind.namespaced}
        | {"kind": kind.kind, "verbs": ["get", "list"]}
        for kind in (_NODES, _PODS)
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": API_VERSION,
        "resources": entries,
    }


def _typed(kind: Kind, body: Obj) -> Obj:
    return {"kind": kind.kind, "apiVersion": API_VERSION, **body}


def _of_pod(pod: Obj, measured: Measured) -> Obj:
    oldest = min(measured.values(), key=lambda figures: figures.at)
    containers = [{"name": name, "usage": _usage(figures)} for name, figures in measured.items()]
    return _head(pod, oldest) | {"containers": containers}


def _head(obj: Obj, figures: Figures) -> Obj:
    known = {k: obj["metadata"][k] for k in ("name", "namespace", "labels") if obj["metadata"].get(k)}
    return {
        "metadata": known | {"creationTimestamp": now()},
        "timestamp": figures.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "window": _duration(figures.window_seconds),
    }


def _usage(figures: Figures) -> Obj:
    nanos, kibibytes = round(figures.cpu_cores * 1e9), figures.memory_bytes // 1024
    return {"cpu": f"{nanos}n" if nanos else "0", "memory": f"{kibibytes}Ki" if kibibytes else "0"}


def _duration(seconds: float) -> str:
    """Write a duration as Go does: 15.023s, 1m0.5s, 2h0m0s."""
    minutes, rest = divmod(round(seconds, 3), 60)
    hours, minutes = divmod(int(minutes), 60)
    shown = f"{rest:.3f}".rstrip("0").rstrip(".") + "s"
    return f"{hours}h{minutes}m{shown}" if hours else f"{minutes}m{shown}" if minutes else shown


def _table(items: list[Obj]) -> Obj:
    columns = [
        {"name": name, "type": "string", "format": form, "description": "", "priority": 0}
        for name, form in _COLUMNS
    ]
    rows = [{"cells": _cells(item), "object": metadata_only(item)} for item in items]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": columns if items else [],
        "rows": rows,
    }


def _cells(item: Obj) -> list[str]:
    usages = [c["usage"] for c in item["containers"]] if "containers" in item else [item["usage"]]
    nanos = sum(int(usage["cpu"].removesuffix("n")) for usage in usages)
    kibibytes = sum(int(usage["memory"].removesuffix("Ki")) for usage in usages)
    cpu = f"{nanos}n" if nanos else "0"
    return [item["metadata"]["name"], cpu, show(kibibytes * 1024 * 1000, "Ki"), item["window"]]
