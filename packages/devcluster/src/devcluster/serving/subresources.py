"""Subresources of objects: logs, exec, scale, finalize, binding, eviction."""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from aiohttp import web

from devcluster.access import rbac
from devcluster.access.rbac import Ask
from devcluster.access.tokens import Tokens
from devcluster.api import Api
from devcluster.errors import bad_request, method_not_allowed, no_such_resource
from devcluster.eviction import evict
from devcluster.resources import POD, Obj
from devcluster.scale import SCALE, scale_of, with_replicas
from devcluster.serving.requests import Query, Target, delete_options, read_body, writer_of
from devcluster.serving.responses import SUCCESS, as_json, one
from devcluster.serving.streaming import Containers, Exec
from devcluster.typed import patches


class Logs(Protocol):
    """Source of pods' logs."""

    async def stream(self, pod: Obj, query: Query, write: Callable[[bytes], Awaitable[None]]) -> None: ...

    def check(self, pod: Obj, query: Query) -> None: ...


class Pods(Containers, Protocol):
    """Answers of kubelets about their pods."""

    @property
    def logs(self) -> Logs: ...

    def reach(self, pod: Obj, what: str) -> None:
        """Raise ApiError if the pod's node does not answer the API server."""


class Subresources:
    def __init__(self, api: Api, pods: Pods, tokens: Tokens):
        self._api, self._pods, self._tokens = api, pods, tokens
        self._exec = Exec(pods)

    async def answer(self, request: web.Request, at: Target, query: Query) -> web.StreamResponse:
        if at.subresource == "log" and request.method == "GET":
            return await self._log(request, at, query)
        if at.subresource == "exec" and request.method in ("GET", "POST"):
            # A WebSocket begins with a GET; the right to read must not include running a command.
            rbac.check(
                self._api.store, request["user"], Ask("create", "", "pods", "exec", at.namespace, at.name)
            )
            pod = self._api.get(POD, at.namespace, at.name)
            self._pods.reach(pod, "exec")
            return await self._exec.answer(request, pod, query)
        if at.subresource in ("attach", "portforward"):
            raise bad_request(f"devcluster does not do pods/{at.subresource}: exec and logs work")
        if at.subresource == "scale":
            return await self._scale(request, at, query)
        if at.subresource == "finalize" and request.method == "PUT":
            body = await read_body(request)
            spec = body.get("spec") or {}
            writer = writer_of(request, at, query)
            done = self._api.update(at.kind, "", at.name, lambda o: o | {"spec": spec}, writer)
            return one(request, at.kind, done)
        if at.subresource == "token" and request.method == "POST":
            body, manager = await read_body(request), writer_of(request, at, query).manager
            return as_json(self._tokens.answer(at.namespace, at.name, body, manager), 201)
        if at.subresource == "binding" and request.method == "POST":
            node = (await read_body(request))["target"]["name"]
            self._api.bind(self._api.get(POD, at.namespace, at.name), node)
            return as_json(SUCCESS | {"code": 201}, 201)
        if at.subresource == "eviction" and request.method == "POST":
            options = delete_options((await read_body(request)).get("deleteOptions") or {}, query)
            evict(self._api, at.namespace, at.name, options, writer_of(request, at, query).manager)
            return as_json(SUCCESS | {"code": 201}, 201)
        raise no_such_resource()

    async def _scale(self, request: web.Request, at: Target, query: Query) -> web.Response:
        if request.method == "GET":
            return as_json(scale_of(self._api.get(at.kind, at.namespace, at.name)))
        if request.method not in ("PATCH", "PUT"):
            raise method_not_allowed()
        if request.method == "PATCH":
            patches.check_type(request.content_type)
        body = await read_body(request)
        patch = patches.patcher(SCALE, request.content_type, body) if request.method == "PATCH" else None

        def change(old: Obj) -> Obj:
            wanted = patch(scale_of(old)) if patch else body
            return with_replicas(old, wanted)

        done = self._api.update(at.kind, at.namespace, at.name, change, writer_of(request, at, query))
        return as_json(scale_of(done))

    async def _log(self, request: web.Request, at: Target, query: Query) -> web.StreamResponse:
        pod = self._api.get(POD, at.namespace, at.name)
        self._pods.reach(pod, "containerLogs")
        self._pods.logs.check(pod, query)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            await self._pods.logs.stream(pod, query, response.write)
        return response
