"""Program of a proof's two pods: it listens, or it tries what it reaches and prints a line of JSON per round.

It runs in an image that has Python 3.8 or newer, from its text alone: the standard library and nothing of Berth's.
BERTH_PROOF is JSON: `{"listen": [ports]}`, or `{"try": {name: [host, port]}, "resolve": name, "seconds": n}`.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

TIMEOUT_SECONDS = 2.0
PAUSE_SECONDS = 1.0
# Answers of a name server, although it does not know the name.
ANSWERED = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


def reaches(address: list[Any]) -> bool:
    """Return True if somebody accepts a connection there."""
    try:
        socket.create_connection((address[0], int(address[1])), TIMEOUT_SECONDS).close()
    except OSError:
        return False
    return True


def resolves(name: str) -> bool:
    """Return True if a name server answers, whatever it answers."""
    try:
        socket.getaddrinfo(name, None)
    except socket.gaierror as error:
        return error.errno in ANSWERED
    return True


def listen(ports: list[int]) -> list[socket.socket]:
    doors = [socket.create_server(("", port)) for port in ports]
    print(json.dumps({"listening": ports}), flush=True)
    return doors


def rounds(wish: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what is reached, round by round, until the time is over."""
    tried = dict(wish["try"])
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        tried["api:service"] = [os.environ["KUBERNETES_SERVICE_HOST"], port]
    end, number = time.monotonic() + wish["seconds"], 0
    with ThreadPoolExecutor(len(tried) + 1) as pool:
        while time.monotonic() < end:
            number += 1
            name = pool.submit(resolves, wish["resolve"])
            found = dict(zip(tried, pool.map(reaches, tried.values())))  # noqa: B905  (Python 3.8 and 3.9)
            yield {"n": number, "reached": found, "dns": name.result()}
            time.sleep(PAUSE_SECONDS)


def main() -> None:
    wish = json.loads(os.environ["BERTH_PROOF"])
    if "listen" in wish:
        doors = listen(wish["listen"])
        while doors:
            time.sleep(60)
    for line in rounds(wish):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
