"""The web server's side of websockets: `uvicorn --ws portal.sockets:Sockets`.

A laptop that is closed reads no more, answers no ping and ends nothing. uvicorn notices by its pings, and then waits
until the peer has taken what was sent to it before: for ever, with all that belongs to the socket.
"""

from __future__ import annotations

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class Sockets(WebSocketsSansIOProtocol):
    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.transport.abort()
