"""Reads that many sockets need at the same moment, done once for all of them.

A change wakes every page that shows the workspace at once. Requests that come during a read are answered together by
the next read: queries and JSON cost what changed, however many people watch. Access is checked on the rows of that
read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, TypeVar
from uuid import UUID

from channels.db import database_sync_to_async

from accounts.access import Actor, sight
from accounts.errors import NotThere
from workspaces.access import is_own, require_there
from workspaces.api.representation import describing, event_json, joined
from workspaces.models import Event, Workspace

EVENTS_AT_ONCE = 500

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class BatchedRead(Generic[Asked, Answer]):
    """Batched read: each caller waits for its own answer, and one read answers many callers."""

    def __init__(self, read: Callable[[Sequence[Asked]], Sequence[Answer]]) -> None:
        self._read = read
        self._waiting: list[tuple[Asked, asyncio.Future[Answer]]] = []
        self._work: asyncio.Task[None] | None = None

    async def __call__(self, asked: Asked) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, answer))
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._answer_all())
        return await answer

    async def _answer_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                found = await database_sync_to_async(self._read)([asked for asked, _ in batch])
            except Exception as error:  # noqa: BLE001  (everybody who waits hears it)
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
            else:
                for (_, answer), one in zip(batch, found, strict=True):
                    if not answer.done():
                        answer.set_result(one)


def frames_of(rows: Iterable[Workspace]) -> Callable[[Workspace, Actor], str]:
    """Return a function for a workspace's frame as text, made once for its owner and once for all others."""
    describe, made = describing(rows), dict[tuple[UUID, bool], str]()

    def frame(row: Workspace, actor: Actor) -> str:
        key = row.pk, is_own(actor, row)
        if key not in made:
            made[key] = json.dumps({"type": "workspace", "workspace": describe(row, actor)})
        return made[key]

    return frame


def rows_for(
    ids: Iterable[UUID], actors: Collection[Actor]
) -> tuple[dict[UUID, Workspace], Callable[..., bool]]:
    """Return the workspaces asked about, and a function that returns True if an actor sees a tenant."""
    rows = {row.pk: row for row in joined(Workspace.objects.filter(pk__in=set(ids)))}
    return rows, sight(actors, {row.tenant_id for row in rows.values()})


def read_changed(asked: Sequence[tuple[Actor, set[UUID]]]) -> list[list[str]]:
    rows, sees = rows_for((pk for _, ids in asked for pk in ids), [actor for actor, _ in asked])
    frame = frames_of(rows.values())
    return [
        [frame(rows[pk], actor) for pk in ids if pk in rows and sees(actor, rows[pk].tenant_id)]
        for actor, ids in asked
    ]


def read_story(
    asked: Sequence[tuple[Actor, UUID, int]],
) -> list[tuple[str, list[tuple[int, str]]] | NotThere]:
    """Return per request workspace and next events, or NotThere. Rows are read first: no state precedes its events."""
    rows, sees = rows_for((pk for _, pk, _ in asked), [actor for actor, _, _ in asked])
    frame = frames_of(rows.values())
    wanted = {(pk, after) for _, pk, after in asked if pk in rows}
    events = {key: _events(*key) for key in wanted}
    found: list[tuple[str, list[tuple[int, str]]] | NotThere] = []
    for actor, pk, after in asked:
        row = rows.get(pk)
        try:
            row = require_there(actor, row if row and sees(actor, row.tenant_id) else None)
        except NotThere as refusal:
            found.append(refusal)
        else:
            found.append((frame(row, actor), events[pk, after]))
    return found


def _events(workspace_id: UUID, after: int) -> list[tuple[int, str]]:
    events = Event.objects.filter(workspace=workspace_id, number__gt=after).order_by("number")
    return [
        (event.number, json.dumps({"type": "event", "event": event_json(event)}))
        for event in events[:EVENTS_AT_ONCE]
    ]


# Changed workspaces that the actor may see.
changed = BatchedRead(read_changed)
# One workspace and its events after a number; NotThere is an answer too.
story = BatchedRead(read_story)
