"""Controller base: changes become keys, which are reconciled one at a time until observed and desired state agree."""

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Generic, TypeVar

from devcluster.api import Api
from devcluster.resources import KINDS
from devcluster.store import Change

Key = TypeVar("Key")
log = logging.getLogger("devcluster")
LONG_SECONDS, REST, LONGEST_REST_SECONDS = 0.003, 2.0, 0.5
"""A key that takes long rests so many times as long, and what happens meanwhile is settled in one go."""


class Controller(Generic[Key]):
    """Base of controllers. A subclass maps a change to keys, and reconciles one key from a fresh read of the store."""

    def __init__(self, api: Api):
        self.api = api
        self._waiting: dict[Key, None] = {}
        self._later: dict[Key, asyncio.TimerHandle] = {}
        self._resting: dict[Key, bool] = {}
        """Whether it was called for meanwhile."""
        self._wake = asyncio.Event()

    def keys(self, change: Change) -> Iterable[Key]:
        raise NotImplementedError

    async def reconcile(self, key: Key) -> float | None:
        """Reconcile one key. Return the seconds after which to try again if no change enqueues the key, or None."""
        raise NotImplementedError

    def add(self, key: Key) -> None:
        if key in self._resting:
            self._resting[key] = True
            return
        self._waiting[key] = None
        self._wake.set()

    def _rest(self, key: Key, seconds: float) -> None:
        self._resting[key] = key in self._waiting  # the key may have been enqueued during its own reconcile
        self._waiting.pop(key, None)
        asyncio.get_running_loop().call_later(seconds, self._rested, key)

    def _rested(self, key: Key) -> None:
        if self._resting.pop(key):
            self.add(key)

    def add_later(self, key: Key, seconds: float) -> None:
        if known := self._later.pop(key, None):
            known.cancel()
        self._later[key] = asyncio.get_running_loop().call_later(seconds, self._due, key)

    def _due(self, key: Key) -> None:
        self._later.pop(key, None)
        self.add(key)

    def _heard(self, change: Change) -> None:
        for key in self.keys(change):
            self.add(key)

    async def run(self) -> None:
        """Reconcile keys for ever; objects that exist already count as just added."""
        for kind in KINDS:
            for obj, encoded in self.api.store.stored(kind):
                self._heard(Change(self.api.store.rv, kind, "ADDED", obj, None, encoded))
        self.api.store.listen(self._heard)
        while True:
            if not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            key = next(iter(self._waiting))
            del self._waiting[key]
            began = time.monotonic()
            try:
                again = await self.reconcile(key)
            except Exception:  # an error on one object must not stop the controller
                log.exception("%s: %s", type(self).__name__, key)
                again = 2.0
            if again is not None:
                self.add_later(key, again)
            if (took := time.monotonic() - began) > LONG_SECONDS:
                self._rest(key, min(took * REST, LONGEST_REST_SECONDS))
            await asyncio.sleep(0)
