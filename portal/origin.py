"""Origin check of websockets: only our own pages may open one, because browsers send cookies from any page.

Another port of the same host is foreign too: a workspace or another program may serve there. Scripts send
no Origin, and no cookie either.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host


class OwnOrigin:
    """ASGI middleware that answers a foreign Origin with 403."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        origin = headers.get(b"origin")
        if origin is None or is_own(origin, headers.get(b"host", "")):
            await self._application(scope, receive, send)
        else:
            await WebsocketDenier()(scope, receive, send)


def is_own(origin: str, host: str) -> bool:
    """Return True for the requested address, or one that the operator trusts: the rule of the CSRF check of forms."""
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    return urlsplit(origin).netloc == host and validate_host(
        split_domain_port(host)[0], settings.ALLOWED_HOSTS
    )
