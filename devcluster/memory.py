"""Python's garbage collector, kept from holding the loop.

A full collection walks through every object there is: with thousands of pods it would hold all answers for seconds.
Stored objects are trees, which are freed without a collector; so what has lived for a moment is taken out of its sight.
"""

import asyncio
import gc

PAUSE_SECONDS, THOROUGH_SECONDS = 1.0, 600.0
FEW = 200_000
"""So many objects are walked through in less than a tenth of a second."""


async def spare() -> None:
    """Collect what is new every second, which is short; everything at times, as long as there is little."""
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
