"""Connection of one person: sign-in, the tunnels that they may open, and the end when they lose access.

A stranger gets little: some seconds, some keys, some bytes, and the same answer whatever is wrong.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import asyncssh
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.utils.translation import gettext, override
from django.utils.translation import gettext_lazy as _

from accounts import addresses

from . import limits, rights
from .carry import Tunnel, reach
from .files import Files
from .rights import Person, Target

log = logging.getLogger(__name__)

RECHECK_SECONDS = 30.0  # a message may be lost; the row is the truth
SETTLE_SECONDS = 0.1  # changes come in groups
WINDOW_BYTES = 512 * 1024  # what one channel may send before the workspace has taken it

_person_with: Callable[..., Any] = database_sync_to_async(rights.person_with)
_target_named: Callable[..., Any] = database_sync_to_async(rights.target_named)
_still: Callable[..., Any] = database_sync_to_async(rights.still)
_note_opening: Callable[..., Any] = database_sync_to_async(rights.note_opening)

TRY_AGAIN = _("Berth cannot check this at the moment. Try again soon.")
NO_SUCH = _("No workspace of yours by this name is ready. Check its page in Berth.")
NO_ANSWER = _("The workspace does not answer at the moment. Try again soon.")
TOO_MANY = _("You have too much open already. Close some of it first.")
NO_MORE = _("You no longer have access.")
MISSED = asyncssh.OPEN_CONNECT_FAILED, NO_SUCH


class Guest(asyncssh.SSHServer):
    """SSH server for one person. What is not overridden is refused: shells, commands, files, agents, listening …"""

    def __init__(self, house: limits.House) -> None:
        self._house = house
        self._person: Person | None = None
        self._tried = 0
        self._address = self._neighbourhood = ""
        self._is_stranger = self._is_counted = self._is_stalled = False
        self._tunnels: set[Tunnel] = set()
        self._layer: Any = get_channel_layer()
        self._news = ""
        self._watch: asyncio.Task[None] | None = None

    # --- connect

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        peer = conn.get_extra_info("peername")
        self._address = addresses.plain(peer[0]) if peer else "127.0.0.1"
        self._neighbourhood = addresses.neighbourhood(self._address)
        self._is_stranger = self._house.strangers.take(self._neighbourhood)
        if not self._is_stranger:
            conn.abort()

    @property
    def is_signed_in(self) -> bool:
        return self._is_counted

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Accept a name and a key of the same person. The answer does not reveal which of the two is wrong."""
        self._person = None
        self._tried += 1
        if self._tried > limits.KEYS_TRIED:
            raise asyncssh.DisconnectError(asyncssh.DISC_NO_MORE_AUTH_METHODS_AVAILABLE, "Too many keys")
        try:
            self._person = await _person_with(username, key.get_fingerprint())
        except limits.AWAY:
            raise asyncssh.DisconnectError(asyncssh.DISC_SERVICE_NOT_AVAILABLE, str(TRY_AGAIN)) from None
        except ValueError:  # a name that no row can have
            return False
        return self._person is not None

    def auth_completed(self) -> None:
        assert self._person is not None
        self._no_longer_a_stranger()
        self._is_counted = self._house.connections.take(self._person.user_id)
        if self._is_counted:
            log.info("%s signed in from %s", self._person.username, self._address)
            self._watch = asyncio.create_task(self._follow())
        else:
            self._part(asyncssh.DISC_TOO_MANY_CONNECTIONS, TOO_MANY)

    # --- open tunnels

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:
        assert self._person is not None
        tunnel = Tunnel(self._is_over)
        self._admit(tunnel)
        channel = self._connection.create_tcp_channel(window=WINDOW_BYTES)
        return channel, self._open(tunnel, dest_host, dest_port)

    def session_requested(self) -> Any:
        """Open the files of the volume in the person's name, over SFTP. Without one, no session is opened."""
        assert self._person is not None
        if not self._person.volume:
            return False
        files = Files(self._is_over, self._person, self._address)
        self._admit(files)
        return self._connection.create_server_channel(encoding=None, window=WINDOW_BYTES), files

    def _admit(self, tunnel: Tunnel) -> None:
        """Count a tunnel for its person. Raise ChannelOpenError beyond their limits."""
        assert self._person is not None
        full = len(self._tunnels) >= limits.TUNNELS_PER_CONNECTION
        if full or not self._house.tunnels.take(self._person.user_id):
            raise self._refusal(asyncssh.OPEN_RESOURCE_SHORTAGE, TOO_MANY)
        self._tunnels.add(tunnel)
        if self._is_stalled:
            tunnel.no_room("connection")

    async def _open(self, tunnel: Tunnel, name: str, port: int) -> Tunnel:
        assert self._person is not None
        try:
            target = await _target_named(self._person, name, port)
            if target is None:
                raise self._refusal(*MISSED)
            await self._lead(tunnel, target)
            if not tunnel.ended:
                await _note_opening(self._person, target, self._address)
        except (*limits.AWAY, ValueError) as error:
            tunnel.end()
            away = isinstance(error, limits.AWAY)
            raise self._refusal(asyncssh.OPEN_CONNECT_FAILED, TRY_AGAIN if away else NO_SUCH) from None
        except asyncssh.ChannelOpenError:
            tunnel.end()
            raise
        if tunnel.ended:
            raise self._refusal(*MISSED)
        log.info("%s opened a tunnel to workspace %s", self._person.username, target.workspace_id)
        return tunnel

    async def _lead(self, tunnel: Tunnel, target: Target) -> None:
        """Connect the tunnel. Listen for changes first, then look again, so that no change is missed."""
        try:
            far = await reach(target, timeout_seconds=limits.CONNECT_SECONDS)
        except (OSError, TimeoutError):
            raise self._refusal(asyncssh.OPEN_CONNECT_FAILED, NO_ANSWER) from None
        tunnel.lead_to(target, far)
        if tunnel.ended:  # its person left meanwhile
            far.leave()
        elif self._news:
            await self._layer.group_add(f"workspace.{target.workspace_id}", self._news)
            await self._look_again()

    def _refusal(self, code: int, words: Any) -> asyncssh.ChannelOpenError:
        return asyncssh.ChannelOpenError(code, self._in_their_language(words))

    def _in_their_language(self, words: Any) -> str:
        with override(self._person.language or "en" if self._person else "en"):
            return gettext(str(words))

    def _is_over(self, tunnel: Tunnel) -> None:
        if tunnel in self._tunnels and self._person is not None:
            self._tunnels.discard(tunnel)
            self._house.tunnels.give_back(self._person.user_id)

    # --- stay connected

    async def _follow(self) -> None:
        """Check the person's rights at every change, and once in a while, until they leave or lose access."""
        assert self._person is not None
        self._news = await self._layer.new_channel()
        try:
            for group in self._groups():
                await self._layer.group_add(group, self._news)
            while await self._look_again():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._layer.receive(self._news), RECHECK_SECONDS)
                    await asyncio.sleep(SETTLE_SECONDS)
            self._part(asyncssh.DISC_BY_APPLICATION, NO_MORE)
        finally:
            self._layer.leave(self._news)

    def _groups(self) -> set[str]:
        assert self._person is not None
        led = {tunnel.target.workspace_id for tunnel in self._tunnels if tunnel.target}
        return {f"user.{self._person.user_id}", *(f"workspace.{each}" for each in led)}

    async def _look_again(self) -> bool:
        """Return True if the person may stay. End tunnels whose target has changed."""
        led = [tunnel for tunnel in self._tunnels if tunnel.target]
        try:
            now = await _still(self._person, {tunnel.target.workspace_id for tunnel in led if tunnel.target})
        except limits.AWAY:
            return True  # nothing changes while the database is away
        for tunnel in led:
            if tunnel.target and (now is None or now.get(tunnel.target.workspace_id) != tunnel.target):
                tunnel.end()
        return now is not None

    def stalled(self, is_stalled: bool) -> None:
        """Pause or resume all tunnels: the person's connection is full, or has room again."""
        self._is_stalled = is_stalled
        for tunnel in self._tunnels:
            (tunnel.no_room if is_stalled else tunnel.room)("connection")

    # --- leave

    async def gone(self) -> None:
        """Return when no lookup for this person is under way any more."""
        if self._watch is not None:
            await asyncio.gather(self._watch, return_exceptions=True)

    def _part(self, code: int, words: Any) -> None:
        self._connection.disconnect(code, self._in_their_language(words))

    def connection_lost(self, exc: Exception | None) -> None:
        self._no_longer_a_stranger()
        if self._watch is not None:
            self._watch.cancel()
        for tunnel in list(self._tunnels):
            tunnel.end()
            self._is_over(tunnel)
        if self._is_counted and self._person is not None:
            self._is_counted = False
            self._house.connections.give_back(self._person.user_id)
            log.info("%s left", self._person.username)

    def _no_longer_a_stranger(self) -> None:
        if self._is_stranger:
            self._is_stranger = False
            self._house.strangers.give_back(self._neighbourhood)
