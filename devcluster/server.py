"""HTTP: paths and verbs become calls of the API; refusals become Status objects."""

import asyncio
import contextlib
import hmac
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from aiohttp import web

from devcluster import discovery, patches, validation
from devcluster.api import Api, Writer
from devcluster.errors import (
    ApiError,
    anonymous,
    bad_request,
    invalid,
    method_not_allowed,
    no_such_resource,
    required,
)
from devcluster.faults import Call, Faults
from devcluster.requests import (
    Query,
    Target,
    delete_options,
    match_of,
    page_of,
    read_body,
    resource_of,
    target,
    verb_of,
)
from devcluster.resources import NAMESPACE, POD, Kind, Obj
from devcluster.scale import scale_of, with_replicas
from devcluster.views import dump, metadata_list, metadata_only, object_list, table, typed
from devcluster.watching import BOOKMARK_SECONDS, Watch

log = logging.getLogger("devcluster")
OPEN_PATHS = ("/healthz", "/readyz", "/livez", "/version")
_PATCHES: dict[str, Callable[[Any, Any], Any]] = {
    "application/merge-patch+json": patches.merge_patch,
    "application/json-patch+json": patches.json_patch,
    "application/strategic-merge-patch+json": patches.strategic_patch,
}
_APPLY = ("application/apply-patch+yaml", "application/apply-patch+cbor")


class Logs(Protocol):
    """Where pods' logs come from."""

    async def stream(self, pod: Obj, query: "Query", write: Callable[[bytes], Awaitable[None]]) -> None: ...

    def check(self, pod: Obj, container: str) -> str: ...


class Server:
    def __init__(self, api: Api, token: str, faults: Faults, logs: Logs):
        self._api, self._token, self._faults, self._logs = api, token, faults, logs
        self.closing = asyncio.Event()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=4 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except ApiError as error:
            return _json(error.status, error.code, error.headers)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            # Bodies of the wrong shape that no validation caught: the client's fault, and worth a rule of its own.
            log.exception("%s %s", request.method, request.path)
            return _json(ApiError(500, "InternalError", f"Internal error occurred: {error!r}").status, 500)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path in OPEN_PATHS:
            return _json(discovery.VERSION) if path == "/version" else web.Response(text="ok")
        found = target(path)
        self._authenticate(request, found)
        if path.startswith("/_faults"):
            return await self._control(request)
        if found is None:
            return discovery.answer(path, f"{request.host}")
        if found.kind.kind == "Event" and path.startswith("/apis/events.k8s.io"):
            pass  # the same objects, in the core group's shape
        query = Query(request.query)
        call = Call(verb_of(request, found, query), resource_of(found), found.namespace, found.name)
        await self._faults.meet(call)
        return await self._dispatch(request, found, query, call)

    def _authenticate(self, request: web.Request, found: Target | None) -> None:
        given = request.headers.get("Authorization", "")
        if not given:
            at = found or Target(NAMESPACE)
            verb = verb_of(request, at, Query(request.query)) if found else request.method.lower()
            raise anonymous(verb, found.kind if found else None, request.path, at.namespace, at.name)
        scheme, _, token = given.partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(
            token.strip().encode(), self._token.encode()
        ):
            raise ApiError(401, "Unauthorized", "Unauthorized")

    async def _control(self, request: web.Request) -> web.Response:
        if request.method == "POST":
            return _json(self._faults.add(await read_body(request)), 201)
        if request.method == "DELETE":
            rest = request.path.removeprefix("/_faults").strip("/")
            self._faults.remove(int(rest) if rest.isdigit() else None)
        return _json(self._faults.list())

    async def _dispatch(
        self, request: web.Request, at: Target, query: Query, call: Call
    ) -> web.StreamResponse:
        if at.subresource and at.subresource != "status":
            return await self._subresource(request, at, query)
        if call.verb == "watch":
            return await self._watch(request, at, query, call)
        if call.verb == "list":
            return self._list(request, at, query)
        if call.verb == "get":
            return _one(request, at.kind, self._api.get(at.kind, at.namespace, at.name))
        if call.verb == "create":
            return await self._create(request, at, query)
        if call.verb == "update" and at.name:
            return await self._replace(request, at, query)
        if call.verb == "patch" and at.name:
            return await self._patch(request, at, query)
        if call.verb == "delete":
            return await self._delete(request, at, query)
        if call.verb == "deletecollection" and at.kind is not NAMESPACE:
            return await self._delete_collection(request, at, query)
        raise method_not_allowed()

    def _writer(self, request: web.Request, at: Target, query: Query) -> Writer:
        agent = request.headers.get("User-Agent", "").split("/")[0] or "unknown"
        dry_run = query.get("dryRun", "")
        if dry_run not in ("", "All"):
            raise bad_request(f'dryRun: Unsupported value: "{dry_run}": supported values: "All"')
        return Writer(query.get("fieldManager") or agent, dry_run == "All", at.subresource)

    def _checked(self, at: Target, body: Any, query: Query) -> list[str]:
        """Decode; members that the kind does not have are dropped with a warning, or refused where strict."""
        validation.decode(at.kind, body)
        unknown = validation.unknown_members(at.kind, body)
        faults = ", ".join(f'unknown field "{name}"' for name in unknown)
        if unknown and query.get("fieldValidation") == "Strict":
            raise bad_request(
                f'{at.kind.kind} in version "{at.kind.version}" cannot be handled as a {at.kind.kind}:'
                f" strict decoding error: {faults}"
            )
        for name in unknown:
            del body[name]
        return (
            [f'unknown field "{name}"' for name in unknown]
            if query.get("fieldValidation") != "Ignore"
            else []
        )

    async def _create(self, request: web.Request, at: Target, query: Query) -> web.Response:
        if at.name:
            raise method_not_allowed()
        body = await read_body(request)
        warnings = self._checked(at, body, query)
        namespace = at.namespace or (body["metadata"].get("namespace", "") if at.kind.namespaced else "")
        made = self._api.create(at.kind, namespace, body, self._writer(request, at, query))
        return _one(request, at.kind, made, 201, warnings)

    async def _replace(self, request: web.Request, at: Target, query: Query) -> web.Response:
        body = await read_body(request)
        warnings = self._checked(at, body, query)
        done = self._api.replace(at.kind, at.namespace, at.name, body, self._writer(request, at, query))
        return _one(request, at.kind, done, 200, warnings)

    async def _patch(self, request: web.Request, at: Target, query: Query) -> web.Response:
        if request.content_type in _APPLY:
            return await self._apply(request, at, query)
        patch = _PATCHES.get(request.content_type)
        if patch is None:
            raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
        body = await read_body(request)
        warnings: list[str] = []

        def change(old: Obj) -> Obj:
            new = patch(typed(at.kind, old), body)
            warnings.extend(self._checked(at, new, query))
            if new["metadata"].get("name") != at.name:
                given = new["metadata"].get("name")
                raise bad_request(
                    f"the name of the object ({given}) does not match the name on the URL ({at.name})"
                )
            return dict(new)

        done = self._api.update(at.kind, at.namespace, at.name, change, self._writer(request, at, query))
        return _one(request, at.kind, done, 200, warnings)

    async def _apply(self, request: web.Request, at: Target, query: Query) -> web.Response:
        if not query.get("fieldManager"):
            options = Kind("meta.k8s.io", "v1", "PatchOptions", "patchoptions")
            raise invalid(options, "", [required("fieldManager", "is required for apply patch")])
        body = await read_body(request, as_yaml=True)
        validation.decode(at.kind, body)
        if unknown := validation.unknown_members(at.kind, body):
            gvk = f"{at.kind.group}/{at.kind.version}, Kind={at.kind.kind}"
            why = f".{unknown[0]}: field not declared in schema"
            message = f"failed to create typed patch object (/{at.name}; {gvk}): {why}"
            raise ApiError(500, "", message)
        writer, force = self._writer(request, at, query), query.flag("force")
        done, new = self._api.apply(at.kind, at.namespace, at.name, body, writer, force)
        return _one(request, at.kind, done, 201 if new else 200)

    async def _delete(self, request: web.Request, at: Target, query: Query) -> web.Response:
        options = delete_options(await read_body(request, optional=True), query)
        uid = self._api.get(at.kind, at.namespace, at.name)["metadata"]["uid"]
        left, gone = self._api.delete(at.kind, at.namespace, at.name, options)
        if gone and not at.kind.returns_deleted:
            details: Obj = {"name": at.name, "kind": at.kind.plural, "uid": uid}
            if at.kind.group:
                details["group"] = at.kind.group
            return _json(
                {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Success",
                    "details": details,
                }
            )
        return _one(request, at.kind, left)

    async def _delete_collection(self, request: web.Request, at: Target, query: Query) -> web.Response:
        options = delete_options(await read_body(request, optional=True), query)
        match = match_of(at, query)
        found = [o for o in self._api.store.all(at.kind, at.namespace) if match(o)]
        for obj in found:
            self._api.delete(at.kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"], options)
        return _json(object_list(at.kind, found, {"resourceVersion": str(self._api.store.rv)}))

    def _list(self, request: web.Request, at: Target, query: Query) -> web.Response:
        self._check_version(query)
        match = match_of(at, query)
        items = [o for o in self._api.store.all(at.kind, at.namespace) if match(o)]
        meta: Obj = {"resourceVersion": str(self._api.store.rv)}
        items, more = page_of(items, query)
        if more:
            meta["continue"] = more
        accept = request.headers.get("Accept", "")
        if "as=Table" in accept:
            return _json(table(at.kind, items, meta))
        if "as=PartialObjectMetadata" in accept:
            return _json(metadata_list(items, meta))
        return _json(object_list(at.kind, items, meta))

    def _check_version(self, query: Query) -> None:
        asked = query.get("resourceVersion", "")
        if asked.isdigit() and int(asked) > self._api.store.rv:
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            message = f"Timeout: Too large resource version: {asked}, current: {self._api.store.rv}"
            raise ApiError(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})

    async def _watch(self, request: web.Request, at: Target, query: Query, call: Call) -> web.StreamResponse:
        asked = query.get("resourceVersion", "")
        if asked and not asked.isdigit():
            parse = f'strconv.ParseUint: parsing "{asked}": invalid syntax'
            raise ApiError(500, "", f'resourceVersion: Invalid value: "{asked}": {parse}')
        initial = asked in ("", "0") or query.flag("sendInitialEvents")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        ended = self._faults.watching(call)
        as_table = "as=Table" in request.headers.get("Accept", "")
        render = (lambda kind, obj: table(kind, [obj], {})) if as_table else typed
        try:
            with Watch(self._api.store, at.kind, at.namespace, match_of(at, query), render) as watch:
                first = _first(watch, int(asked or 0), initial)
                await response.prepare(request)
                for line in first:
                    await response.write(line)
                if query.flag("sendInitialEvents"):
                    await response.write(watch.bookmark(initial_events_end=True))
                await self._follow(response, watch, query, ended)
        except ConnectionError:
            pass
        finally:
            self._faults.unwatch(ended)
        return response

    async def _follow(
        self, response: web.StreamResponse, watch: Watch, query: Query, ended: asyncio.Event
    ) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + float(query.get("timeoutSeconds") or 1800)
        stops = [asyncio.ensure_future(e.wait()) for e in (ended, self.closing)]
        bookmark_at = loop.time() + BOOKMARK_SECONDS
        change = asyncio.ensure_future(watch.next())
        try:
            while not watch.overrun:
                pause = min(deadline, bookmark_at) - loop.time()
                await asyncio.wait(
                    [change, *stops], timeout=max(pause, 0), return_when=asyncio.FIRST_COMPLETED
                )
                if any(s.done() for s in stops):
                    return
                if change.done():
                    if line := change.result():
                        await response.write(line)
                    change = asyncio.ensure_future(watch.next())
                elif loop.time() >= deadline:
                    return
                if loop.time() >= bookmark_at:
                    bookmark_at = loop.time() + BOOKMARK_SECONDS
                    if query.flag("allowWatchBookmarks") and not change.done():
                        await response.write(watch.bookmark())
        finally:
            for task in (change, *stops):
                task.cancel()

    async def _subresource(self, request: web.Request, at: Target, query: Query) -> web.StreamResponse:
        if at.subresource == "log" and request.method == "GET":
            return await self._log(request, at, query)
        if at.subresource == "scale":
            return await self._scale(request, at, query)
        if at.subresource == "finalize" and request.method == "PUT":
            body = await read_body(request)
            spec = body.get("spec") or {}
            writer = self._writer(request, at, query)
            done = self._api.update(at.kind, "", at.name, lambda o: o | {"spec": spec}, writer)
            return _one(request, at.kind, done)
        if at.subresource == "binding" and request.method == "POST":
            node = (await read_body(request))["target"]["name"]
            bound = {"nodeName": node}
            writer = self._writer(request, at, query)
            self._api.update(POD, at.namespace, at.name, lambda o: o | {"spec": o["spec"] | bound}, writer)
            return _json(
                {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
            )
        if at.subresource == "eviction" and request.method == "POST":
            options = delete_options((await read_body(request)).get("deleteOptions") or {}, query)
            self._api.delete(POD, at.namespace, at.name, options)
            return _json(
                {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
            )
        raise no_such_resource()

    async def _scale(self, request: web.Request, at: Target, query: Query) -> web.Response:
        if request.method == "GET":
            return _json(scale_of(self._api.get(at.kind, at.namespace, at.name)))
        if request.method not in ("PATCH", "PUT"):
            raise method_not_allowed()
        patch = _PATCHES.get(request.content_type, patches.merge_patch) if request.method == "PATCH" else None
        body = await read_body(request)

        def change(old: Obj) -> Obj:
            wanted = patch(scale_of(old), body) if patch else body
            return with_replicas(old, wanted)

        done = self._api.update(at.kind, at.namespace, at.name, change, self._writer(request, at, query))
        return _json(scale_of(done))

    async def _log(self, request: web.Request, at: Target, query: Query) -> web.StreamResponse:
        pod = self._api.get(POD, at.namespace, at.name)
        self._logs.check(pod, query.get("container", ""))
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            await self._logs.stream(pod, query, response.write)
        return response


def _first(watch: Watch, rv: int, initial: bool) -> list[bytes]:
    """A watch from a forgotten version opens, and says ERROR in its stream."""
    try:
        return list(watch.first(rv, initial))
    except ApiError as error:
        return [dump({"type": "ERROR", "object": error.status})]


def _one(
    request: web.Request, kind: Kind, obj: Obj, code: int = 200, warnings: list[str] | None = None
) -> web.Response:
    accept = request.headers.get("Accept", "")
    headers = {"Warning": ", ".join(f'299 - "{w}"'.replace('"', "'") for w in warnings)} if warnings else {}
    if "as=Table" in accept:
        return _json(
            table(kind, [obj], {"resourceVersion": obj["metadata"].get("resourceVersion", "")}), code, headers
        )
    if "as=PartialObjectMetadata" in accept:
        return _json(metadata_only(obj), code, headers)
    return _json(typed(kind, obj), code, headers)


def _json(body: Any, code: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=dump(body), status=code, content_type="application/json", headers=headers)
