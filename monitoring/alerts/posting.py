"""One HTTP request to an address that somebody entered: no redirects, bounded time and answer, and no way into our own
networks for those who may not.

The name is resolved once, and the connection goes to the address that was checked: a name that changes between check
and use leads nowhere else. Proxies of the environment are not used, as they would resolve the name again.
"""

from __future__ import annotations

import http.client
import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

CONNECT_SECONDS = 5.0
ALL_SECONDS = 15.0
LARGEST_ANSWER = 4096
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class NotPosted(Exception):
    """No answer came, or the address may not be called. The text holds no part of the address but its host."""


@dataclass(frozen=True)
class Request:
    url: str
    body: bytes
    headers: Mapping[str, str]
    method: str = "POST"


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes


def is_inside(address: Address, networks: Iterable[Network]) -> bool:
    """Return True for addresses of this machine, of its link (cloud metadata are there) and of these networks."""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address.is_reserved
        or any(address in network for network in networks if network.version == address.version)
    )


def post(request: Request, *, refused: Iterable[Network] | None) -> Answer:
    """Send the request. `refused`: networks that it must not reach, besides this machine and its link; None: it may
    reach everything. Raise NotPosted if no answer came in time.
    """
    until = time.monotonic() + ALL_SECONDS
    try:
        parts = urlsplit(request.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        addresses = _resolve(parts.hostname or "", port)
        if refused is not None:
            refused = list(refused)
            if any(is_inside(ipaddress.ip_address(address), refused) for address in addresses):
                raise NotPosted("The address lies in a network that this route may not reach.")
        return _exchange(request, parts.scheme, parts.hostname or "", addresses[0], port, until)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise NotPosted(f"{type(error).__name__}: {_plain(error)}") from None


def _resolve(host: str, port: int) -> list[str]:
    """Return the addresses of the host. The system's resolver takes no time limit, so it is left behind if it hangs."""
    found: queue.SimpleQueue[list[str] | OSError | ValueError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.put(list(dict.fromkeys(str(row[4][0]) for row in rows)))
        except (OSError, ValueError) as error:
            found.put(error)

    threading.Thread(target=look_up, name="address of a receiver", daemon=True).start()
    try:
        told = found.get(timeout=ALL_SECONDS)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(told, Exception):
        raise told
    return told


def _exchange(request: Request, scheme: str, host: str, address: str, port: int, until: float) -> Answer:
    raw = socket.create_connection((address, port), timeout=CONNECT_SECONDS)
    # Time limits of sockets count from byte to byte; this one ends the whole exchange, by another handle on the same
    # connection: TLS takes the first one over.
    handle = raw.dup()
    over = threading.Timer(until - time.monotonic(), _shut, [handle])
    over.start()
    try:
        if scheme == "https":
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
        raw.settimeout(ALL_SECONDS)
        connection = http.client.HTTPConnection(host, port)
        connection.sock = raw
        parts = urlsplit(request.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request(request.method, target, request.body or None, dict(request.headers))
        answer = connection.getresponse()
        return Answer(answer.status, answer.read(LARGEST_ANSWER))
    finally:
        over.cancel()
        over.join()
        handle.close()
        raw.close()


def _shut(handle: socket.socket) -> None:
    with suppress(OSError):
        handle.shutdown(socket.SHUT_RDWR)


def _plain(error: Exception) -> str:
    """Return the system's own words: the text of other errors may quote the address."""
    if isinstance(error, OSError):
        return (error.strerror or "")[:160]
    return ""
