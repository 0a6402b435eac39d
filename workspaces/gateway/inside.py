"""Ask a workspace's Jupyter what runs there, at the gateway's address and with its token: that is no activity."""

from __future__ import annotations

import aiohttp
from yarl import URL

from workspaces.state.inside import MOST_BYTES, MOST_SECONDS, Inside, parse

from . import upstream

PATH = "berth/status"


async def ask(address: str, token: str, text: str = "") -> Inside | None:
    """Return what runs there, after the text was written into its terminals. None: no answer, or none that holds."""
    try:
        async with upstream.client().request(
            "POST" if text else "GET",
            URL(address + PATH),
            headers={"Authorization": f"token {token}"},
            data=text.encode() or None,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=MOST_SECONDS),
        ) as given:
            if given.status != 200:
                return None
            body = b""
            async for piece in given.content.iter_any():
                body += piece
                if len(body) > MOST_BYTES:
                    return None
            return parse(body, of_jupyter=True)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return None
