"""The web server's side of websockets: `uvicorn --ws portal.sockets:Sockets`.

A closed laptop stops reading, answers no ping and closes nothing. uvicorn notices by its pings, but then waits until
the peer has read what was sent before: for ever, keeping all that belongs to the socket. So we abort the connection.
"""

from __future__ import annotations

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class Sockets(WebSocketsSansIOProtocol):
    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.transport.abort()
