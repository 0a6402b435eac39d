"""HTTP server: maps paths and verbs to calls of the API, and refusals to Status objects."""

import asyncio
import logging
from dataclasses import replace

from aiohttp import web

from devcluster.access import rbac
from devcluster.access.authentication import Authentication
from devcluster.access.reviews import Reviews
from devcluster.api import Api
from devcluster.errors import ApiError, method_not_allowed
from devcluster.faults.callfaults import Call, CallFaults, Cut, OpenWatch, break_off
from devcluster.faults.registry import Faults
from devcluster.metering import Metering
from devcluster.resources import NAMESPACE, REVIEWS, Obj
from devcluster.serving import bodies, discovery
from devcluster.serving.listing import check_version, number_of, read_list
from devcluster.serving.metallb import Addresses, MetalLB
from devcluster.serving.metrics import Metrics
from devcluster.serving.options import check_list, check_write
from devcluster.serving.requests import (
    Query,
    Target,
    asked,
    delete_options,
    match_of,
    read_body,
    resource_of,
    target,
    verb_of,
    writer_of,
)
from devcluster.serving.responses import SUCCESS, as_json, in_parts, json_answer, one
from devcluster.serving.subresources import Pods, Subresources
from devcluster.serving.views import metadata_list, object_list, table, typed
from devcluster.serving.watching import BOOKMARK_SECONDS, Watch
from devcluster.typed import patches

log = logging.getLogger("devcluster")
OPEN_PATHS = ("/healthz", "/readyz", "/livez", "/version")
_APPLY = ("application/apply-patch+yaml", "application/apply-patch+cbor")


class Server:
    def __init__(
        self,
        api: Api,
        authentication: Authentication,
        faults: Faults,
        calls: CallFaults,
        pods: Pods,
        metering: Metering,
        addresses: Addresses,
    ):
        self._api, self._authentication, self._faults, self._calls = api, authentication, faults, calls
        self._reviews = Reviews(api.store, authentication)
        self._additions = (Metrics(api.store, metering), MetalLB(addresses))
        self._subresources = Subresources(api, pods, authentication.tokens)
        self.closing = asyncio.Event()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=4 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return in_parts(await self._answer(request))
        except ApiError as error:
            return as_json(error.status, error.code, error.headers)
        except Cut:
            break_off(request)
            return web.Response()
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            # A wrong body that no validation found: the client's error, and worth a rule of its own.
            log.exception("%s %s", request.method, request.path)
            return as_json(ApiError(500, "InternalError", f"Internal error occurred: {error!r}").status, 500)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path, query = request.path, Query(request.query)
        ask = asked(request.method, path, query)
        user = request["user"] = self._authentication.user(request.headers, ask)
        rbac.check(self._api.store, user, ask)
        if path.startswith("/_faults"):
            if rbac.MASTERS not in user.groups:
                raise rbac.refusal(user, ask, "only the admin switches faults")
            return await self._control(request)
        found = target(path)
        call = call_of(request, found, query)
        if call.verb == "create" and not call.name:
            call = replace(call, name=await name_in(request))
        met = await self._calls.meet(call)
        return await self._calls.leave(met, request, await self._found(request, found, query, call))

    async def _found(
        self, request: web.Request, found: Target | None, query: Query, call: Call
    ) -> web.StreamResponse:
        if request.path in OPEN_PATHS:
            return as_json(discovery.VERSION) if request.path == "/version" else web.Response(text="ok")
        if found is None:
            for addition in self._additions:
                if addition.serves(request.path):
                    return addition.answer(request, query)
            groups = [group for addition in self._additions for group in addition.groups]
            return discovery.answer(request.path, f"{request.host}", groups)
        if found.kind in REVIEWS:
            return await self._review(request, found, query, call)
        return await self._dispatch(request, found, query, call)

    async def _control(self, request: web.Request) -> web.Response:
        if request.method == "POST":
            return as_json(self._faults.add(await read_body(request)), 201)
        if request.method == "DELETE":
            rest = request.path.removeprefix("/_faults").strip("/")
            self._faults.remove(int(rest) if rest.isdigit() else None)
        return as_json(self._faults.list())

    async def _dispatch(
        self, request: web.Request, at: Target, query: Query, call: Call
    ) -> web.StreamResponse:
        if at.subresource and at.subresource != "status":
            return await self._subresources.answer(request, at, query)
        if call.verb == "watch":
            return await self._watch(request, at, query, call)
        if call.verb == "list":
            return self._list(request, at, query)
        if call.verb == "get":
            check_version(self._api.store, number_of(query))
            return one(request, at.kind, self._api.get(at.kind, at.namespace, at.name))
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

    async def _review(self, request: web.Request, at: Target, query: Query, call: Call) -> web.StreamResponse:
        if call.verb != "create":
            raise method_not_allowed()
        body, _ = bodies.written(at, await read_body(request, at.kind), query)
        manager = writer_of(request, at, query).manager
        return as_json(self._reviews.answer(at.kind, body, request["user"], manager), 201)

    async def _create(self, request: web.Request, at: Target, query: Query) -> web.Response:
        if at.name:
            raise method_not_allowed()
        check_write(query, "CreateOptions")
        body, warnings = bodies.written(at, await read_body(request, at.kind), query)
        namespace = at.namespace or (body["metadata"].get("namespace", "") if at.kind.namespaced else "")
        made = self._api.create(at.kind, namespace, body, writer_of(request, at, query))
        return one(request, at.kind, made, 201, warnings)

    async def _replace(self, request: web.Request, at: Target, query: Query) -> web.Response:
        check_write(query, "UpdateOptions")
        body, warnings = bodies.written(at, await read_body(request, at.kind), query)
        done = self._api.replace(at.kind, at.namespace, at.name, body, writer_of(request, at, query))
        return one(request, at.kind, done, 200, warnings)

    async def _patch(self, request: web.Request, at: Target, query: Query) -> web.Response:
        applies = request.content_type in _APPLY
        check_write(query, "PatchOptions", applies)
        if applies:
            return await self._apply(request, at, query)
        patches.check_type(request.content_type)
        patch = await read_body(request)
        warnings: list[str] = []

        def change(old: Obj) -> Obj:
            new, told = bodies.patched(at, request.content_type, patch, typed(at.kind, old), query)
            warnings.extend(told)
            return new

        done = self._api.update(at.kind, at.namespace, at.name, change, writer_of(request, at, query))
        return one(request, at.kind, done, 200, warnings)

    async def _apply(self, request: web.Request, at: Target, query: Query) -> web.Response:
        body = bodies.applied(at, await read_body(request, as_yaml=True))
        writer, force = writer_of(request, at, query), query.flag("force")
        done, new = self._api.apply(at.kind, at.namespace, at.name, body, writer, force)
        return one(request, at.kind, done, 201 if new else 200)

    async def _delete(self, request: web.Request, at: Target, query: Query) -> web.Response:
        options = delete_options(await read_body(request, optional=True), query)
        uid = self._api.get(at.kind, at.namespace, at.name)["metadata"]["uid"]
        left, gone = self._api.delete(at.kind, at.namespace, at.name, options)
        if gone and not at.kind.returns_deleted:
            details: Obj = {"name": at.name, "kind": at.kind.plural, "uid": uid}
            if at.kind.group:
                details["group"] = at.kind.group
            return as_json(SUCCESS | {"details": details})
        return one(request, at.kind, left)

    async def _delete_collection(self, request: web.Request, at: Target, query: Query) -> web.Response:
        options = delete_options(await read_body(request, optional=True), query)
        match = match_of(at, query)
        found = [s for s in self._api.store.stored(at.kind, at.namespace) if match(s.obj)]
        for obj, _ in found:
            self._api.delete(at.kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"], options)
        meta = {"resourceVersion": str(self._api.store.rv)}
        return json_answer(object_list(at.kind, (s.encoded for s in found), meta))

    def _list(self, request: web.Request, at: Target, query: Query) -> web.Response:
        check_list(query, watches=False)
        store = self._api.store
        items, meta = read_list(store, at.kind, at.namespace, match_of(at, query), query)
        accept = request.headers.get("Accept", "")
        if "as=Table" in accept:
            return as_json(table(at.kind, [s.obj for s in items], meta))
        if "as=PartialObjectMetadata" in accept:
            return as_json(metadata_list([s.obj for s in items], meta))
        return json_answer(object_list(at.kind, (s.encoded for s in items), meta))

    async def _watch(self, request: web.Request, at: Target, query: Query, call: Call) -> web.StreamResponse:
        check_list(query, watches=True)
        match, since = match_of(at, query), number_of(query)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        opened = self._calls.watching(call)
        as_table = "as=Table" in request.headers.get("Accept", "")
        render = (lambda kind, obj: table(kind, [obj], {})) if as_table else None
        try:
            with Watch(self._api.store, at.kind, at.namespace, match, render) as watch:
                first = watch.first(since, query)
                await response.prepare(request)
                await self._calls.audible(opened)
                for line in first:
                    await response.write(line)
                await self._follow(response, watch, query, opened)
                if opened.cut:
                    await response.write(b'{"type":"MODIF')
                    raise Cut
        except ConnectionError:
            pass
        finally:
            self._calls.unwatch(opened)
        return response

    async def _follow(
        self, response: web.StreamResponse, watch: Watch, query: Query, opened: OpenWatch
    ) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + float(query.get("timeoutSeconds") or 1800)
        stops = [asyncio.ensure_future(e.wait()) for e in (opened.ended, self.closing)]
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
                await self._calls.audible(opened)
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


async def name_in(request: web.Request) -> str:
    """Return the name that a new object's body gives it, so that a fault can tell it; "" if it cannot be read."""
    try:
        return str((await read_body(request))["metadata"].get("name", ""))
    except (ApiError, LookupError, TypeError, AttributeError):
        return ""


def call_of(request: web.Request, at: Target | None, query: Query) -> Call:
    agent = request.headers.get("User-Agent", "")
    if at is None:
        return Call(verb="get", method=request.method, path=request.path, user_agent=agent)
    return Call(
        verb=verb_of(request, at, query),
        resource=resource_of(at),
        namespace=at.namespace,
        name=at.name,
        kind=at.kind.kind,
        method=request.method,
        path=request.path,
        user_agent=agent,
    )
