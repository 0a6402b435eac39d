"""The web process says that it lives from when it starts until it ends: its server tells it of both."""

from __future__ import annotations

from typing import Any

from vitals import pulse


class Beating:
    """ASGI middleware, before all others."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            async with pulse.beating("web"):
                await self._application(scope, receive, send)
        else:
            await self._application(scope, receive, send)
