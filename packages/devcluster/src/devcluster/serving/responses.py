"""Objects and Status as HTTP answers, in the form that the client asked for."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from devcluster.resources import Kind, Obj
from devcluster.serving.views import dump, metadata_only, table, typed

PART_BYTES = 2**20
SUCCESS: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def one(
    request: web.Request, kind: Kind, obj: Obj, code: int = 200, warnings: list[str] | None = None
) -> web.Response:
    accept = request.headers.get("Accept", "")
    headers = CIMultiDict(("Warning", f"299 - {json.dumps(w)}") for w in warnings or ())
    if "as=Table" in accept:
        return as_json(
            table(kind, [obj], {"resourceVersion": obj["metadata"].get("resourceVersion", "")}), code, headers
        )
    if "as=PartialObjectMetadata" in accept:
        return as_json(metadata_only(obj), code, headers)
    return as_json(typed(kind, obj), code, headers)


def as_json(body: Any, code: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return json_answer(dump(body), code, headers)


def json_answer(body: bytes, code: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=body, status=code, content_type="application/json", headers=headers)


def in_parts(answer: web.StreamResponse) -> web.StreamResponse:
    """Send a large body in parts, so that its encryption does not delay all other answers."""
    if isinstance(answer, web.Response) and isinstance(answer.body, bytes) and len(answer.body) > PART_BYTES:
        answer.body = _parts(answer.body)
    return answer


async def _parts(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), PART_BYTES):
        yield body[start : start + PART_BYTES]
        await asyncio.sleep(0)
