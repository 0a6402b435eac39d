"""Faults on demand, so that tests and trials can see how a client bears a cluster that is not well.

`POST /_faults` (admin token) with one JSON object; `GET /_faults` lists what is on; `DELETE /_faults` ends all of it,
`DELETE /_faults/ID` one. A fault matches requests by `match`: any of `verb` (get, list, watch, create, update, patch,
delete, deletecollection), `resource` (plural, `pods` or `pods/log`), `namespace`, `name`; what is left out matches all.

- `{"latency_ms": 200, "match": {…}}`            answer that much later
- `{"status": 429, "retry_after": 1, "times": 3, "match": {…}}`  refuse (429, 500, 503 …), for ever or so many times
- `{"hold": true, "match": {…}}`                 let calls wait, unanswered and undone, until the fault is deleted
- `{"drop_watches": true, "match": {…}}`         once: break the watches that are open
- `{"expire_watches": true}`                     once: forget history, so that older watches get 410 Expired
- `{"node": "a100-1", "ready": false}`           a node stops answering (true: it is back)
- `{"image": "REF", "error": "…"}`               pulls of an image fail so (error null: they work again)
"""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from devcluster.errors import ApiError, bad_request
from devcluster.resources import Obj

_REASONS = {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}


@dataclass(frozen=True)
class Call:
    """What a fault can match."""

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""


@dataclass
class Fault:
    id: int
    spec: Obj
    released: asyncio.Event = field(default_factory=asyncio.Event)
    hits: int = 0

    def matches(self, call: Call) -> bool:
        match = self.spec.get("match") or {}
        return all(getattr(call, key) == value for key, value in match.items())


class Faults:
    def __init__(self, set_node: Callable[[str, bool], None], expire: Callable[[], None]):
        self._set_node, self._expire = set_node, expire
        self._ids = itertools.count(1)
        self._faults: dict[int, Fault] = {}
        self._watches: dict[asyncio.Event, Call] = {}
        self.image_errors: dict[str, str] = {}

    def add(self, spec: Obj) -> Obj:
        unknown = set(spec.get("match") or {}) - set(Call.__dataclass_fields__)
        if unknown:
            raise bad_request(f"unknown match: {', '.join(sorted(unknown))}")
        fault = Fault(next(self._ids), spec)
        if "node" in spec:
            self._set_node(spec["node"], bool(spec.get("ready")))
        elif "image" in spec:
            self._set_image(spec["image"], spec.get("error"))
        elif spec.get("expire_watches"):
            self._expire()
        elif spec.get("drop_watches"):
            for ended, call in self._watches.items():
                if fault.matches(call):
                    ended.set()
        elif {"latency_ms", "status", "hold"} & set(spec):
            self._faults[fault.id] = fault
        else:
            raise bad_request("no such fault; see devcluster/faults.py")
        return {"id": fault.id, **spec}

    def _set_image(self, image: str, error: str | None) -> None:
        if error is None:
            self.image_errors.pop(image, None)
        else:
            self.image_errors[image] = error

    def list(self) -> Obj:
        return {"faults": [{"id": f.id, "hits": f.hits, **f.spec} for f in self._faults.values()]}

    def remove(self, fault_id: int | None = None) -> None:
        for fault in list(self._faults.values()):
            if fault_id in (None, fault.id):
                fault.released.set()
                del self._faults[fault.id]
        if fault_id is None:
            self.image_errors.clear()

    async def meet(self, call: Call) -> None:
        """Bear what is switched on for this call."""
        for fault in [f for f in self._faults.values() if f.matches(call)]:
            fault.hits += 1
            if latency_ms := fault.spec.get("latency_ms"):
                await asyncio.sleep(latency_ms / 1000)
            if fault.spec.get("hold"):
                await fault.released.wait()
            if status := fault.spec.get("status"):
                if fault.spec.get("times") == fault.hits:
                    self._faults.pop(fault.id, None)
                raise _refusal(status, fault.spec.get("retry_after"))

    def watching(self, call: Call) -> asyncio.Event:
        """Set when this watch is to break; hand it back with `unwatch`."""
        ended = asyncio.Event()
        self._watches[ended] = call
        return ended

    def unwatch(self, ended: asyncio.Event) -> None:
        self._watches.pop(ended, None)


def _refusal(status: int, retry_after: int | None) -> ApiError:
    details: Obj = {"retryAfterSeconds": retry_after} if retry_after is not None else {}
    headers = {"Retry-After": str(retry_after)} if retry_after is not None else {}
    message = "the server is currently unable to handle the request"
    return ApiError(status, _REASONS.get(status, ""), message, details, headers)
