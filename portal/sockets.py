"""The web server's side of websockets: `uvicorn --ws portal.sockets:Sockets`.

A closed laptop stops reading, answers no ping and closes nothing. uvicorn notices by its pings, but then waits until
the peer has read what was sent before: for ever, keeping all that belongs to the socket. So we abort the connection.

Berth's own sockets ignore what a client sends, so they take in little: uvicorn would keep up to 16 MiB for each. Those
of workspaces carry the messages of Jupyter and of apps.
"""

from __future__ import annotations

import re

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

LARGEST_MESSAGE_BYTES = 4 * 2**10  # from a client of Berth's own sockets
HOST = re.compile(rb"^host: *([^\r\n]*)", re.IGNORECASE | re.MULTILINE)


class Sockets(WebSocketsSansIOProtocol):
    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Limit the messages before the first is parsed: uvicorn passes the whole handshake in the first call."""
        from workspaces.gateway.hosts import (
            site_at,
        )  # the server imports this module before Django is set up

        if not self.handshake_initiated and not any(
            site_at(host.decode("latin-1")) for host in HOST.findall(data)
        ):
            self.conn.max_message_size = LARGEST_MESSAGE_BYTES
        super().data_received(data)
