"""The live-event layer: a member gets its group's messages until it leaves, and then leaves nothing behind."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from portal.channel_layer import NotifyLayer

pytestmark = pytest.mark.django_db(transaction=True)


async def next_of(layer: NotifyLayer, channel: str) -> dict[str, Any]:
    return await asyncio.wait_for(layer.receive(channel), 10)


async def test_a_page_that_is_open_for_days_still_hears(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = NotifyLayer()
    channel = await layer.new_channel()
    await layer.group_add("tenant.x", channel)
    days_later = time.time() + 3 * 86_400
    monkeypatch.setattr(time, "time", lambda: days_later)
    for number in (1, 2):
        await layer.group_send("tenant.x", {"type": "changed", "number": number})
        assert (await next_of(layer, channel))["number"] == number


async def test_a_message_reaches_all_of_its_group_and_nobody_else() -> None:
    layer = NotifyLayer()
    channels = [await layer.new_channel() for _ in range(3)]
    for channel, group in zip(channels, ("a", "a", "b"), strict=True):
        await layer.group_add(group, channel)
    await layer.group_send("a", {"type": "first"})
    await layer.group_send("b", {"type": "second"})
    assert [(await next_of(layer, channel))["type"] for channel in channels] == ["first", "first", "second"]


async def test_who_left_hears_nothing_and_nothing_is_kept_for_them() -> None:
    layer = NotifyLayer()
    leaving, staying = [await layer.new_channel() for _ in range(2)]
    for channel in (leaving, staying):
        await layer.group_add("a", channel)
        await layer.group_add("b", channel)
    await layer.group_send("a", {"type": "unread"})
    assert (await next_of(layer, staying))["type"] == "unread"
    layer.leave(leaving)
    await layer.group_send("b", {"type": "later"})
    assert (await next_of(layer, staying))["type"] == "later"
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(layer.receive(leaving), 0.05)


async def test_who_stops_waiting_misses_nothing() -> None:
    layer = NotifyLayer()
    channel = await layer.new_channel()
    await layer.group_add("a", channel)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(layer.receive(channel), 0.01)
    await layer.group_send("a", {"type": "changed"})
    assert await next_of(layer, channel) == {"type": "changed"}


async def test_a_join_takes_place_at_once_so_that_whoever_leaves_in_it_is_no_member_for_ever() -> None:
    layer = NotifyLayer()
    channel = await layer.new_channel()
    await layer.group_add("a", channel)
    with pytest.raises(StopIteration):
        layer.group_add("b", channel).send(None)
    layer.leave(channel)
    assert not layer._members
    assert not layer._joined
