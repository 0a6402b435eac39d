"""Common reads: a change is read once for all who watch, and people get only what they may see."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.errors import NotThere
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace
from workloads.live.reads import BatchedRead
from workspaces.live.consumers import WORKSPACES

pytestmark = pytest.mark.django_db


def test_many_who_watch_cost_as_many_queries_as_one(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    everybody = [cast.bob, cast.alice, cast.victor, cast.admin] * 10
    changed = [(actor, {workspace.pk}) for actor in everybody]
    story = [(actor, workspace.pk, 3) for actor in everybody]
    assert queries(WORKSPACES.read_changed, changed) == queries(WORKSPACES.read_changed, changed[:1])
    assert queries(WORKSPACES.read_story, story) == queries(WORKSPACES.read_story, story[:1])


def queries(read: Callable[[Any], Sequence[Any]], asked: Sequence[Any]) -> int:
    with CaptureQueriesContext(connection) as done:
        assert len(read(asked)) == len(asked)
    return len(done)


def test_each_hears_what_they_may_see(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    people = (cast.bob, cast.victor, cast.carol, cast.admin)
    found = WORKSPACES.read_changed([(actor, {workspace.pk}) for actor in people])
    assert [len(frames) for frames in found] == [1, 1, 0, 1]
    environments = [json.loads(frames[0])["workspace"]["env"] for frames in found if frames]
    assert environments == [{"GREETING": "hello"}, None, None]
    stories = WORKSPACES.read_story([(actor, workspace.pk, 8) for actor in people])
    assert [isinstance(story, NotThere) for story in stories] == [False, False, True, False]
    told = [[number for number, _ in story[1]] for story in stories if not isinstance(story, NotThere)]
    assert told == [[9, 10]] * 3


@pytest.mark.django_db(transaction=True)
async def test_who_asks_during_a_read_is_answered_by_the_next_with_all_others() -> None:
    batches: list[Any] = []
    may_answer = threading.Event()

    def read(asked: Sequence[int]) -> list[int]:
        batches.append(list(asked))
        assert may_answer.wait(10)
        return [number * 10 for number in asked]

    together = BatchedRead(read)
    first = asyncio.create_task(together(1))
    while not batches:
        await asyncio.sleep(0.01)
    others = [asyncio.create_task(together(number)) for number in (2, 3, 4)]
    while len(together._waiting) < len(others):
        await asyncio.sleep(0)
    others[1].cancel()
    may_answer.set()
    assert await first == 10
    assert [await others[0], await others[2]] == [20, 40]
    assert batches == [[1], [2, 3, 4]]


@pytest.mark.django_db(transaction=True)
async def test_a_read_that_fails_fails_for_those_who_asked_and_not_for_the_next() -> None:
    def read(asked: Sequence[int]) -> list[int]:
        if 1 in asked:
            raise ValueError("gone")
        return list(asked)

    together = BatchedRead(read)
    with pytest.raises(ValueError, match="gone"):
        await together(1)
    assert await together(2) == 2
