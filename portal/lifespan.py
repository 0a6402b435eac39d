"""Sign of life of the web process, from its start to its end, of which its server informs it."""

from __future__ import annotations

from typing import Any

from vitals import pulse


class Beating:
    """ASGI middleware that must be the outermost."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            async with pulse.beating("web"):
                await self._application(scope, receive, send)
        else:
            await self._application(scope, receive, send)
