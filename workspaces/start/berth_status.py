"""What runs in the workspace, for Berth: a handler of its Jupyter server. Asking counts as no activity.

GET answers busy kernels, and what `status.sh` says. POST does the same, and first writes its body into open terminals.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import ensure_async
from tornado import web

SCRIPT = Path(__file__).parent / "status.sh"
MOST_SECONDS = 4
MOST_TEXT_BYTES = 2000
WAITS = {"idle", "starting", "restarting", "autorestarting", "terminating", "dead"}


class Status(APIHandler):  # type: ignore[misc]
    _track_activity = False

    @web.authenticated  # type: ignore[untyped-decorator]
    async def get(self) -> None:
        await self.tell(b"")

    @web.authenticated  # type: ignore[untyped-decorator]
    async def post(self) -> None:
        await self.tell(self.request.body[:MOST_TEXT_BYTES])

    async def tell(self, text: bytes) -> None:
        kernels: list[dict[str, Any]] = await ensure_async(self.kernel_manager.list_kernels())
        busy = sum(kernel["execution_state"] not in WAITS for kernel in kernels)
        self.finish(json.dumps({"kernels": busy, **await ask_the_script(text)}))


async def ask_the_script(text: bytes) -> dict[str, Any]:
    """Return the answer of `status.sh`. Raise HTTPError 503 if there is none in time: then nothing is known."""
    pipe = asyncio.subprocess.PIPE
    script = await asyncio.create_subprocess_exec("/bin/sh", str(SCRIPT), stdin=pipe, stdout=pipe)
    try:
        said, _none = await asyncio.wait_for(script.communicate(text), MOST_SECONDS)
        answer: dict[str, Any] = json.loads(said)
    except (TimeoutError, ValueError):
        raise web.HTTPError(503) from None
    finally:
        if script.returncode is None:
            script.kill()
            await script.wait()
    return answer


default_handlers = [(r"/berth/status", Status)]
