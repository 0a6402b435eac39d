"""Discovery: the versions, groups and resources that a client asks for first."""

from aiohttp import web

from devcluster import resources
from devcluster.errors import no_such_resource
from devcluster.serving import openapi
from devcluster.serving.views import dump

VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.2",
    "gitCommit": "devcluster",
    "gitTreeState": "",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "go1.26.10",
    "compiler": "gc",
    "platform": "linux/amd64",
}


def answer(path: str, host: str, more: list[resources.Obj]) -> web.Response:
    """Answer a discovery path. `more`: groups that other modules serve."""
    parts = [p for p in path.split("/") if p]
    if parts == ["api"]:
        address = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
        return _json({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": address})
    if parts == ["apis"]:
        listed = resources.group_list()
        return _json(listed | {"groups": [*listed["groups"], *more]})
    if parts == ["api", "v1"]:
        return _json(resources.resource_list(""))
    if parts[:1] == ["apis"] and len(parts) in (2, 3) and parts[1] in resources.groups():
        if len(parts) == 2:
            found = next(g for g in resources.group_list()["groups"] if g["name"] == parts[1])
            return _json({"kind": "APIGroup", "apiVersion": "v1", **found})
        if parts[2] == "v1":
            return _json(resources.resource_list(parts[1]))
    if parts[:2] == ["openapi", "v3"]:
        return _json(openapi.document("/".join(parts[3:])) if parts[2:] else openapi.index())
    if parts[:2] == ["api", "v1"] or (
        parts[:1] == ["apis"] and len(parts) > 2 and parts[1] in resources.groups()
    ):
        raise no_such_resource()
    return web.Response(text="404 page not found\n", status=404)


def _json(body: resources.Obj) -> web.Response:
    return web.Response(body=dump(body), content_type="application/json")
