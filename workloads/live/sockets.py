"""Websockets that send every committed change that a person may see.

A message only wakes a socket. The data is read from the rows, so a lost or doubled message does no harm. Groups are
joined before the first read, so that no change is missed. Each socket has one sender: what changes several times while
a slow client reads is sent once, in its last state.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from channels.consumer import get_handler_name
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor, not_there
from accounts.credentials import tickets
from accounts.credentials.sessions import session_row
from accounts.credentials.sign_in import not_signed_in, still
from accounts.errors import NotAllowed, NotSignedIn, NotThere, TooMany
from accounts.models import Scope, User
from quotas.live import GROUP as POOLS
from vitals.figures import Gauge

logger = logging.getLogger(__name__)
Json = dict[str, Any]

SOCKETS = Gauge("berth_sockets", "Websockets of pages and scripts that are open.")

NOT_SIGNED_IN = 4401
NOT_THERE = 4404
TICKET_EXPIRED = 4408
TOO_MANY = 4429
FAILED = 1011

PING_SECONDS = 20
MOST_OF_PERSON = 100  # sockets, in this process
LONGEST_REASON_BYTES = 120  # RFC 6455, 5.5: a close frame has 125 bytes, two of them the code

_open: Counter[UUID] = Counter()  # sockets by person


class Live(AsyncJsonWebsocketConsumer):  # type: ignore[misc]
    """Base of all sockets: the person, a ping, one sender, and an end when the person loses access."""

    actor: Actor

    async def connect(self) -> None:
        await self.accept()  # a refusal needs an open socket to carry its code
        SOCKETS.add(1)
        self._joined: set[str] = set()
        self._wake = asyncio.Event()
        self._recheck = False
        self._counted_for: UUID | None = None
        self._jobs = [asyncio.create_task(self._live())]

    async def disconnect(self, code: int) -> None:
        SOCKETS.add(-1)
        if self._counted_for is not None:
            _open.subtract([self._counted_for])
            if not _open[self._counted_for]:
                del _open[self._counted_for]
        for job in self._jobs:
            job.cancel()
        self.channel_layer.leave(self.channel_name)

    async def dispatch(self, message: Json) -> None:
        """Call the handler without Channels' database clean-up, which takes a thread: no handler uses the database."""
        await getattr(self, get_handler_name(message))(message)

    async def receive(self, *_: Any, **__: Any) -> None:
        """Ignore what a client sends: an error here would leave the socket's tasks running."""

    async def _live(self) -> None:
        """Serve the socket after the handshake. A refusal anywhere closes it with the code for the reason."""
        try:
            self.actor = await database_sync_to_async(who)(self.scope)
            self._count(self.actor.user.pk)
            self.start(self._ping())
            if self.actor.token is not None:
                self.start(self._recheck_at(self.actor.token.expires_at))
            await self._join()
            # Check again: a sign-out before the groups were joined did not reach this socket.
            self.actor = await database_sync_to_async(self._still)()
            while True:
                await self.send_changes()
                await self._wake.wait()
                self._wake.clear()
                if self._recheck:
                    self._recheck = False
                    self.actor = await database_sync_to_async(self._still)()
                    await self._join()
        except NotSignedIn as refusal:
            await self.close(TICKET_EXPIRED if refusal.code == "ticket_expired" else NOT_SIGNED_IN)
        except (NotThere, NotAllowed):
            await self.close(NOT_THERE)
        except TooMany as refusal:
            text = f"{refusal.message} {refusal.hint}".encode()[:LONGEST_REASON_BYTES]
            await self.close(TOO_MANY, reason=text.decode(errors="ignore"))
        except Exception:
            logger.exception("a websocket failed; its client comes back")
            await self.close(FAILED)

    async def send(self, *args: Any, **kwargs: Any) -> None:
        """Send, unless the client has left: its disconnect, which is on its way, ends the socket's tasks."""
        with suppress(OSError):
            await super().send(*args, **kwargs)

    def _count(self, person_id: UUID) -> None:
        """Count this socket for its person until it ends. Raise TooMany beyond MOST_OF_PERSON."""
        if _open[person_id] >= MOST_OF_PERSON:
            raise TooMany(
                "too_many_sockets",
                _("You have %(count)d websockets open already.") % {"count": MOST_OF_PERSON},
                _("Close some pages or scripts."),
            )
        _open[person_id] += 1
        self._counted_for = person_id

    def _still(self) -> Actor:
        """Return the actor as of now. Raise NotSignedIn if access ended, or the browser session of the socket."""
        actor = still(self.actor)
        actor.require(Scope.READ)
        return actor

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task beside the sender; it ends with the socket."""
        self._jobs.append(asyncio.create_task(work))

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(PING_SECONDS)
            await self.send_json({"type": "ping"})

    async def _recheck_at(self, moment: datetime) -> None:
        await asyncio.sleep((moment - timezone.now()).total_seconds())
        if timezone.now() < moment:  # the clock was set back meanwhile
            await self._recheck_at(moment)
        else:
            await self.access_changed({})

    async def _join(self) -> None:
        wanted = {f"user.{self.actor.user.pk}"} | await database_sync_to_async(self.groups_to_hear)()
        for group in wanted - self._joined:
            await self.channel_layer.group_add(group, self.channel_name)
        for group in self._joined - wanted:
            await self.channel_layer.group_discard(group, self.channel_name)
        self._joined = wanted

    def groups_to_hear(self) -> set[str]:
        """Groups that wake this socket, besides its person's own. Synchronous; raises NotThere."""
        raise NotImplementedError

    async def send_changes(self) -> None:
        """Read the rows and send what the client does not have yet."""
        raise NotImplementedError

    # --- Messages of the channel layer: each only wakes the sender

    def wake(self) -> None:
        self._wake.set()

    async def resync(self, message: Json) -> None:
        self.wake()

    async def access_changed(self, message: Json) -> None:
        """Check access before the next send: the person was deactivated, or their tenants changed."""
        self._recheck = True
        self.wake()


def who(scope: Json) -> Actor:
    """Return the person of a ticket or of the session's cookie. NotSignedIn says which of the two failed."""
    ticket = query(scope).get("token")
    if ticket is not None:
        actor = tickets.redeem(ticket)
        actor.require(Scope.READ)
        return actor
    user = scope.get("user")
    if not isinstance(getattr(user, "pk", None), UUID):
        raise not_signed_in()
    row = session_row(scope["session"])
    return still(Actor(User.objects.get(pk=user.pk), session_row=row))  # type: ignore[union-attr]


def query(scope: Json) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(scope["query_string"].decode()).items()}


class Nowhere(Live):
    """Unknown address: closed with NOT_THERE."""

    def groups_to_hear(self) -> set[str]:
        raise not_there()


class Pools(Live):
    """Socket that wakes pages showing pools. It sends no data: the page then loads what its person may see."""

    def groups_to_hear(self) -> set[str]:
        return {POOLS}

    async def send_changes(self) -> None:
        await self.send_json({"type": "pools"})

    async def pools_changed(self, message: Json) -> None:
        self.wake()
