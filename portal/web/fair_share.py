"""Fair shares of the web process's threads: a person has so many requests answered at once, the others wait in line.

Threads share one interpreter and one pool of connections. Without shares, a script with sixteen connections would leave
everybody else a seventeenth of both. Who uses much CPU has one turn at a time, so that a page of somebody else shares
the interpreter with one other thread, not with three.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from hashlib import sha256
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import LazyObject
from django.utils.translation import gettext as _

from accounts.addresses import neighbourhood, plain
from accounts.errors import TooMany
from accounts.models import User

# Requests answered at once in one process: of a person, and of an address without a known sign-in.
MOST_AT_ONCE = 3
# In one line. After a restart, all open pages come back by addresses: their people are not known yet.
MOST_WAITING = 256
# Seconds of CPU, as a sum that halves in HALF_LIFE_SECONDS: beyond it a person has one turn at once. One thread that is
# always busy reaches 14 s; a page takes some 30 ms.
HEAVY_SECONDS = 1.5
HALF_LIFE_SECONDS = 10.0
LONGEST_WAIT_SECONDS = 30.0
RETRY_SECONDS = 1
MOST_KNOWN = 10_000


class Crowded(Exception):
    """Refusal of a turn: too many wait already, or it did not come in time."""


class Lane:
    def __init__(self) -> None:
        self.running = 0
        self.waiting: deque[asyncio.Future[None]] = deque()


class Lanes:
    """Lines of requests, one per key: each has so many turns at once, given in the order of arrival.

    A person who has used much CPU lately has one turn at once. An address never has: a whole class may sign in behind
    one, and each password costs CPU.
    """

    def __init__(self, most_at_once: int, longest_wait_seconds: float = LONGEST_WAIT_SECONDS) -> None:
        self._most, self._longest_wait = most_at_once, longest_wait_seconds
        self._lanes: dict[Hashable, Lane] = {}
        self._used: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()  # seconds, as of a moment

    def __len__(self) -> int:
        return len(self._lanes)

    async def take(self, key: Hashable) -> None:
        """Wait for a turn, which ends with `give_back`. Raise Crowded if the line is too long or none comes in time."""
        lane = self._lanes.setdefault(key, Lane())
        if lane.running < self._width(key, _now()) and not lane.waiting:
            lane.running += 1
            return
        if len(lane.waiting) >= MOST_WAITING:
            raise Crowded
        turn = asyncio.get_running_loop().create_future()
        lane.waiting.append(turn)
        try:
            async with asyncio.timeout(self._longest_wait):
                await turn
        except TimeoutError:
            self._leave(key, lane, turn)
            raise Crowded from None
        except asyncio.CancelledError:
            self._leave(key, lane, turn)
            raise

    def give_back(self, key: Hashable, seconds: float = 0.0) -> None:
        """End a turn that took so many seconds of CPU."""
        lane, now = self._lanes[key], _now()
        lane.running -= 1
        self._note(key, seconds, now)
        while lane.waiting and lane.running < self._width(key, now):
            turn = lane.waiting.popleft()
            if not turn.done():
                lane.running += 1
                turn.set_result(None)
        if not lane.running and not lane.waiting:
            del self._lanes[key]

    def _note(self, key: Hashable, seconds: float, now: float) -> None:
        self._used[key] = self._used_by(key, now) + seconds, now
        self._used.move_to_end(key)
        if len(self._used) > MOST_KNOWN:
            self._used.popitem(last=False)

    def _used_by(self, key: Hashable, now: float) -> float:
        used, at = self._used.get(key, (0.0, now))
        return float(used * 0.5 ** ((now - at) / HALF_LIFE_SECONDS))

    def _width(self, key: Hashable, now: float) -> int:
        return 1 if isinstance(key, UUID) and self._used_by(key, now) > HEAVY_SECONDS else self._most

    def _leave(self, key: Hashable, lane: Lane, turn: asyncio.Future[None]) -> None:
        if turn.done() and not turn.cancelled():
            self.give_back(key)  # the turn came in the moment of leaving
        elif turn in lane.waiting:
            lane.waiting.remove(turn)

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncIterator[None]:
        await self.take(key)
        try:
            yield
        finally:
            self.give_back(key)


class Askers:
    """Persons behind credentials, as answered requests had them: to know one before a thread is taken."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, UUID] = OrderedDict()

    def lane_of(self, request: HttpRequest) -> Hashable:
        """Return the person's id, or the address if the credential is not known to be somebody's."""
        credential = _credential(request)
        if credential is not None and credential in self._known:
            return self._known[credential]
        try:
            return neighbourhood(plain(request.META.get("REMOTE_ADDR", "")))
        except ValueError:  # a unix socket has no address
            return ""

    def note(self, request: HttpRequest) -> None:
        """Remember whose the request was; forget a credential that no longer is anybody's.

        A file of a page and a probe ask for nobody, so they tell nothing about the credential that came with them.
        """
        credential, who = _credential(request), _who(request)
        if credential is None or who is None:
            return
        if type(who) is not User:
            self._known.pop(credential, None)
            return
        self._known[credential] = who.pk
        self._known.move_to_end(credential)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)


def _credential(request: HttpRequest) -> bytes | None:
    """Return a digest of the token or the session's key, so that memory holds neither."""
    found = request.headers.get("Authorization") or request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    return sha256(found.encode()).digest() if found else None


def _who(request: HttpRequest) -> object | None:
    """Return who the credential proved to be, without a query, or None if nothing asked for it.

    A token sets `user`, a session fills its cache.
    """
    if "Authorization" in request.headers:
        user = request.__dict__.get("user")
        return None if isinstance(user, LazyObject) else user
    return getattr(request, "_cached_user", None)


def _now() -> float:
    return asyncio.get_running_loop().time()


def too_many_at_once() -> TooMany:
    return TooMany(
        "too_many_at_once",
        _("Too many requests at the same time: Berth answers %(count)d of yours at once.")
        % {"count": MOST_AT_ONCE},
        _("Wait for answers before you send more."),
        retry_after_seconds=RETRY_SECONDS,
    )
