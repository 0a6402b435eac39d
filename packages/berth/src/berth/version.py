"""Version of this package, compared with that of a server."""

from __future__ import annotations

from importlib.metadata import version

VERSION = version("berth-cli")


def is_made_for(server: str, own: str = VERSION) -> bool:
    """Return True if the first two numbers are the same: their API is."""
    return server.split(".")[:2] == own.split(".")[:2]
