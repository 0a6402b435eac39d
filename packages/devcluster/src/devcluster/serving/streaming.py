"""exec over WebSockets, as kubectl (v5.channel.k8s.io) and the client libraries (v4) use it.

Every message begins with the number of its channel: 0 stdin, 1 stdout, 2 stderr, 3 the final status, 4 the terminal's
size; in v5, 255 closes the channel that follows. The older SPDY is not supported.
"""

import asyncio
import contextlib
import json
from typing import Protocol

from aiohttp import WSMsgType, web

from devcluster.errors import bad_request
from devcluster.kubelet.containers.logs import chosen
from devcluster.kubelet.processes.sessions import DRAIN_SECONDS, CannotExecute, Session, Wish
from devcluster.kubelet.runtime import Container
from devcluster.resources import Obj
from devcluster.serving.requests import Query

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, ENDING, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255


class Containers(Protocol):
    def running(self, pod: Obj, name: str) -> Container | None:
        """Return the container of this name, if it runs."""
        ...


class Exec:
    def __init__(self, containers: Containers):
        self._containers = containers

    async def answer(self, request: web.Request, pod: Obj, query: Query) -> web.StreamResponse:
        upgrade = request.headers.get("Upgrade", "").lower()
        if not upgrade:
            raise bad_request("Upgrade request required")
        name = chosen(pod, query.get("container", ""))
        if not any(query.flag(stream) for stream in ("stdin", "stdout", "stderr")):
            return web.Response(status=400, text="you must specify at least 1 of stdin, stdout, stderr")
        container = self._containers.running(pod, name)
        if container is None:
            return web.Response(status=500, text=f'container not found ("{name}")')
        if upgrade != "websocket":
            raise bad_request("devcluster does not speak SPDY: use a client that execs over WebSockets")
        offered = {p.strip() for p in request.headers.get("Sec-WebSocket-Protocol", "").split(",")}
        if not offered & set(PROTOCOLS):
            return web.Response(status=403)
        wish = Wish(request.query.getall("command", []), query.flag("stdin"), query.flag("tty"))
        channel = web.WebSocketResponse(protocols=PROTOCOLS)
        await channel.prepare(request)
        with contextlib.suppress(ConnectionError):
            await channel.send_bytes(bytes([STDOUT]))
            ending = await _execute(channel, container, wish, query)
            await channel.send_bytes(bytes([ENDING]) + json.dumps(ending, separators=(",", ":")).encode())
            await channel.close()
        return channel


async def _execute(channel: web.WebSocketResponse, container: Container, wish: Wish, query: Query) -> Obj:
    """Run the command. Return the status that the last message carries."""
    try:
        session = await container.execute(wish)
    except CannotExecute as error:
        return _failed(str(error))
    listening = asyncio.ensure_future(_listen(channel, session))
    outputs = zip((STDOUT, STDERR), session.outputs, strict=False)
    telling = [
        asyncio.ensure_future(_tell(channel, number if _asked(number, query) else None, output))
        for number, output in outputs
    ]
    ending = asyncio.ensure_future(session.wait())
    try:
        await asyncio.wait([ending, listening], return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            raise ConnectionError("the client has gone")
        code = ending.result()
        await asyncio.wait(telling, timeout=DRAIN_SECONDS)
        return _ended(code)
    except CannotExecute as error:
        return _failed(str(error))
    finally:
        for task in (listening, ending, *telling):
            task.cancel()
        session.close()


def _asked(number: int, query: Query) -> bool:
    return query.flag("stdout" if number == STDOUT else "stderr")


async def _tell(channel: web.WebSocketResponse, number: int | None, output: asyncio.StreamReader) -> None:
    """Send output to its channel. Read it even if the client does not want it, or the command would block for ever."""
    with contextlib.suppress(OSError):  # the client may have gone
        while part := await output.read(32768):
            if number is not None:
                await channel.send_bytes(bytes([number]) + part)


async def _listen(channel: web.WebSocketResponse, session: Session) -> None:
    """Pass the client's messages to the session until the client leaves."""
    async for message in channel:
        if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
            continue
        data = message.data if isinstance(message.data, bytes) else message.data.encode()
        number, content = data[:1], data[1:]
        if number == bytes([STDIN]) and session.stdin:
            session.stdin.write(content)
            with contextlib.suppress(OSError):  # the command closed its stdin
                await session.stdin.drain()
        elif number == bytes([RESIZE]):
            with contextlib.suppress(ValueError, KeyError, TypeError):
                size = json.loads(content)
                session.resize(int(size["Width"]), int(size["Height"]))
        elif number == bytes([CLOSE]) and content == bytes([STDIN]) and session.stdin:
            session.stdin.close()


def _ended(code: int) -> Obj:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: command terminated with exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _failed(why: str) -> Obj:
    message = (
        f"Internal error occurred: error executing command in container: failed to exec in container: {why}"
    )
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {message}",
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    }
