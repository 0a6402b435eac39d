"""Long steps that run beside a controller's loop: begun once, polled until they are done."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any


class Background:
    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    def done(
        self, key: Hashable, begin: Callable[[], Coroutine[Any, Any, None]], wake: Callable[[], None]
    ) -> bool:
        """Begin the step if needed; return True once it is done, or raise its error. `wake` is called at its end."""
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.ensure_future(begin())
            task.add_done_callback(lambda _: wake())
        if not task.done():
            return False
        del self._tasks[key]
        task.result()
        return True

    def busy(self, key: Hashable) -> bool:
        task = self._tasks.get(key)
        return task is not None and not task.done()
