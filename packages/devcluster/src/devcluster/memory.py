"""Garbage collection in short steps, so that it does not block the event loop.

A full collection visits every object: with thousands of pods it would delay all answers for seconds. Stored objects
are trees, which Python frees without the collector, so objects that survived one collection are frozen out of it.
"""

import asyncio
import gc

PAUSE_SECONDS, THOROUGH_SECONDS = 1.0, 600.0
FEW = 200_000
"""So many objects are walked through in less than a tenth of a second."""


async def spare() -> None:
    """Collect new objects every second, which is short; all objects every ten minutes, while they are few."""
    loop = asyncio.get_running_loop()
    thorough_at = loop.time() + THOROUGH_SECONDS
    while True:
        await asyncio.sleep(PAUSE_SECONDS)
        if loop.time() >= thorough_at:
            thorough_at = loop.time() + THOROUGH_SECONDS
            if gc.get_freeze_count() < FEW:
                gc.unfreeze()
        gc.collect()
        gc.freeze()
