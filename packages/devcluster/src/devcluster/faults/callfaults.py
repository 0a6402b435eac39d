"""Faults of calls and watches: slow, refused, cut off, held at an exact point, dropped, silent."""

import asyncio
import random
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, fields

from aiohttp import web

from devcluster.errors import ApiError, bad_request
from devcluster.faults.registry import Fault, Switch, check_match, number, one_of
from devcluster.resources import Obj

_REASONS = {500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
_WORDS = {
    500: "Internal error occurred: etcdserver: request timed out",
    503: "the server is currently unable to handle the request",
    504: "Timeout: request did not complete within the allotted duration",
}


@dataclass(frozen=True)
class Call:
    """Facts of a call; a spec's `match` names some of them, each with a value or a pattern (`demo-*`)."""

    verb: str
    resource: str = ""
    namespace: str = ""
    name: str = ""
    kind: str = ""
    method: str = ""
    path: str = ""
    user_agent: str = ""


FACTS = {fact.name for fact in fields(Call)}


@dataclass
class OpenWatch:
    call: Call
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    cut: bool = False
    """It is to end in the middle of a line, as when the network goes."""


class Cut(Exception):
    """Break of the connection at this point, without an answer."""


class CallFaults:
    """Faults of calls and watches. `compact` drops the history from which watches begin."""

    def __init__(self, compact: Callable[[], None]):
        self._compact = compact
        self._calls: dict[int, Fault] = {}
        self._silent: dict[int, Fault] = {}
        self._watches: list[OpenWatch] = []
        common = frozenset({"match", "share", "times"})
        self.switches = (
            Switch(
                ("latency_ms", "status", "hold", "reset"), common | {"retry_after", "message"}, self._on_calls
            ),
            Switch(("drop_watches", "reset_watches"), frozenset({"match"}), self._break_watches),
            Switch(("silent_watches",), frozenset({"match"}), self._silence_watches),
            Switch(("expire_watches",), frozenset(), self._expire_watches),
        )

    def _on_calls(self, fault: Fault) -> Callable[[], object]:
        spec = fault.spec
        check_match(spec, FACTS)
        for name in ("latency_ms", "share", "times", "retry_after"):
            number(spec, name)
        if "hold" in spec and spec["hold"] is not True:
            one_of(spec, "hold", ("before", "after"))
        if "reset" in spec:
            one_of(spec, "reset", ("before", "middle", "after"))
        if "status" in spec and not 400 <= number(spec, "status") <= 599:
            raise bad_request("status is one from 400 to 599")
        self._calls[fault.id] = fault
        return lambda: self._calls.pop(fault.id, None)

    def _break_watches(self, fault: Fault) -> None:
        check_match(fault.spec, FACTS)
        for watch in self._watches:
            if fault.matches(vars(watch.call)):
                watch.cut = bool(fault.spec.get("reset_watches"))
                watch.ended.set()

    def _silence_watches(self, fault: Fault) -> Callable[[], object]:
        check_match(fault.spec, FACTS)
        self._silent[fault.id] = fault
        return lambda: self._silent.pop(fault.id, None)

    def _expire_watches(self, fault: Fault) -> None:
        self._compact()

    async def meet(self, call: Call) -> list[Fault]:
        """Apply the faults that act before the call. Return all matching faults, for `leave`; raise Cut on a reset."""
        met = [f for f in self._calls.values() if f.matches(vars(call)) and _strikes(f)]
        for fault in met:
            fault.hits += 1
            await asyncio.sleep(fault.spec.get("latency_ms", 0) / 1000)
            if fault.spec.get("hold") in (True, "before"):
                await fault.released.wait()
            if fault.spec.get("reset") == "before":
                raise Cut
            if status := fault.spec.get("status"):
                raise _refusal(status, fault.spec)
        return met

    async def leave(
        self, met: list[Fault], request: web.Request, answer: web.StreamResponse
    ) -> web.StreamResponse:
        """Apply the faults that act after the action and before its answer; raise Cut on a reset."""
        for fault in met:
            if fault.spec.get("hold") == "after":
                await fault.released.wait()
            if fault.spec.get("reset") == "after":
                raise Cut
            if fault.spec.get("reset") == "middle" and isinstance(answer, web.Response):
                await _half(request, answer)
                raise Cut
        return answer

    def watching(self, call: Call) -> OpenWatch:
        """Register a watch. Its event is set when the watch must break; end it with `unwatch`."""
        watch = OpenWatch(call)
        self._watches.append(watch)
        return watch

    def unwatch(self, watch: OpenWatch) -> None:
        self._watches.remove(watch)

    async def audible(self, watch: OpenWatch) -> None:
        """Wait until no fault keeps this watch silent."""
        while fault := next((f for f in self._silent.values() if f.matches(vars(watch.call))), None):
            fault.hits += 1
            await fault.released.wait()


def break_off(request: web.Request) -> None:
    """End the connection by a reset, as a crashed server or a firewall does, not by a proper close."""
    if (transport := request.transport) is None:
        return
    if (connection := transport.get_extra_info("socket")) is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def _half(request: web.Request, answer: web.Response) -> None:
    body = answer.body if isinstance(answer.body, bytes) else b""
    begun = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
    begun.content_length = len(body)
    await begun.prepare(request)
    await begun.write(body[: len(body) // 2])


def _strikes(fault: Fault) -> bool:
    times, share = fault.spec.get("times"), fault.spec.get("share", 1)
    return (times is None or fault.hits < times) and random.random() < float(share)


def _refusal(status: int, spec: Obj) -> ApiError:
    message = spec.get("message") or _WORDS.get(status, _WORDS[503])
    reason = _REASONS.get(status, "")
    retry_after = spec.get("retry_after")
    if status == 429:
        message, reason = (
            spec.get("message") or "Too many requests, please try again later.",
            "TooManyRequests",
        )
    details: Obj = {} if retry_after is None else {"retryAfterSeconds": retry_after}
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return ApiError(status, reason, message, details, headers)
