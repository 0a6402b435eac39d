"""Way from Berth's gateway to the apps in the workspace, and of its SSH jump for colleagues: handlers of Jupyter.

`GET /berth/apps/6006` with `Upgrade: berth-app` becomes a plain connection to port 6006 of this container, so an app
may listen on 127.0.0.1 alone. It answers 502 if nothing listens there. `GET /berth/ssh` leads to the SSH server, which
takes colleagues' keys from this pod's own address only.
"""

from __future__ import annotations

import asyncio
import os

from jupyter_server.base.handlers import JupyterHandler
from tornado import web
from tornado.iostream import IOStream, StreamClosedError
from tornado.tcpclient import TCPClient

PROTOCOL = "berth-app"
CONNECT_SECONDS = 4
PIECE_BYTES = 65536
SSH_PORT = 2222
POD_IP = os.environ.get("POD_IP")


class App(JupyterHandler):  # type: ignore[misc]
    _track_activity = False

    @web.authenticated  # type: ignore[untyped-decorator]
    async def get(self, port: str) -> None:
        await self.lead_to("127.0.0.1", int(port))

    async def lead_to(self, host: str, port: int, *, from_ip: str | None = None) -> None:
        if self.request.headers.get("Upgrade") != PROTOCOL:
            raise web.HTTPError(426)
        try:
            app = await TCPClient().connect(host, port, source_ip=from_ip, timeout=CONNECT_SECONDS)
        except (OSError, OverflowError, StreamClosedError, TimeoutError):
            raise web.HTTPError(502) from None
        self.set_status(101)
        self.set_header("Upgrade", PROTOCOL)
        self.set_header("Connection", "Upgrade")
        self.finish()
        gateway = self.detach()
        for end in (app, gateway):
            end.set_nodelay(True)
        await asyncio.gather(pour(gateway, app), pour(app, gateway))


class Ssh(App):
    @web.authenticated  # type: ignore[untyped-decorator]
    async def get(self) -> None:
        await self.lead_to(POD_IP or "127.0.0.1", SSH_PORT, from_ip=POD_IP)


async def pour(source: IOStream, sink: IOStream) -> None:
    """Carry until one of both closes, then close the other. The next piece is read when the last was taken."""
    try:
        while True:
            await sink.write(await source.read_bytes(PIECE_BYTES, partial=True))
    except StreamClosedError:
        pass
    finally:
        source.close()
        sink.close()


default_handlers = [(r"/berth/apps/([0-9]{1,5})", App), (r"/berth/ssh", Ssh)]
