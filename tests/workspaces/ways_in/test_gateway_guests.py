"""Guests of the gateway, asked for as seldom as can be, and how many places one of them may take."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest

from workspaces.gateway import guests
from workspaces.gateway.hosts import Site
from workspaces.gateway.passes import Guest


def test_one_visitor_of_a_shared_app_leaves_room_for_others() -> None:
    site, owner, visitors = Site(uuid4(), 7860), uuid4(), [uuid4(), uuid4()]
    first, second = (Guest(user_id=one, owner_id=owner) for one in visitors)
    with ExitStack() as taken:
        for _ in range(guests.MOST_AT_ONCE // 8):
            taken.enter_context(guests.place(site, first))
        with pytest.raises(guests.Crowded):
            taken.enter_context(guests.place(site, first))
        taken.enter_context(guests.place(site, second))
        taken.enter_context(guests.place(Site(uuid4(), 7860), first))
        for _ in range(guests.MOST_AT_ONCE // 4):
            taken.enter_context(guests.place(site, Guest(user_id=owner, owner_id=owner)))
    assert not guests._under_way


async def test_all_who_ask_for_a_guest_share_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    key, asked = ("secret", Site(uuid4(), None)), 0
    guest = Guest(user_id=uuid4())

    async def ask(*_: Any) -> Guest:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.01)
        return guest

    monkeypatch.setattr(guests, "_ask", ask)
    assert await asyncio.gather(*(guests.guest_of(*key) for _ in range(100))) == [guest] * 100
    assert asked == 1
    changed = [asyncio.create_task(guests.guest_of(*key, not_before=time.monotonic())) for _ in range(100)]
    changed[0].cancel()  # whose browser went away takes nothing from the others
    assert await asyncio.gather(*changed[1:]) == [guest] * 99
    assert asked == 2
    guests._known.pop(key)
