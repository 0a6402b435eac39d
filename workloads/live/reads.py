"""Reads that many sockets need at the same moment, done once for all of them.

A change wakes every page that shows the row at once. Requests that come during a read are answered together by the next
read: queries and JSON cost what changed, however many people watch. Access is checked on the rows of that read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar
from uuid import UUID

from channels.db import database_sync_to_async
from django.db.models import QuerySet

from accounts.access import Actor, sight
from accounts.errors import NotThere
from workloads.models import Workload

from .sockets import Json

EVENTS_AT_ONCE = 500

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
Row = TypeVar("Row", bound=Workload)
Story = tuple[str, list[tuple[int, str]]] | NotThere


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


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[Row]):
    """Workspaces or jobs, as sockets need them.

    `joined`: rows of these ids with all that their JSON needs. `describing`: a function for the JSON of any of them for
    any actor. `listed`: rows of an actor's list. `require_there` raises NotThere for None and for what is deleted.
    """

    name: str
    joined: Callable[[Collection[UUID]], QuerySet[Row]]
    listed: Callable[[Actor], QuerySet[Row]]
    describing: Callable[[Iterable[Row]], Callable[[Row, Actor], Json]]
    get: Callable[[Actor, UUID], Row]
    require_there: Callable[[Actor, Row | None], Row]
    event_json: Callable[[Any], Json]
    # Actors for whom this is equal get the same JSON of the row.
    seen_as: Callable[[Row, Actor], Hashable] = lambda row, actor: row.owner_id == actor.user.pk

    @cached_property
    def changed(self) -> BatchedRead[tuple[Actor, set[UUID]], list[str]]:
        """Changed rows that the actor may see."""
        return BatchedRead(self.read_changed)

    @cached_property
    def story(self) -> BatchedRead[tuple[Actor, UUID, int], Story]:
        """Row and its events after a number; NotThere is an answer too."""
        return BatchedRead(self.read_story)

    def rows_for(
        self, ids: Iterable[UUID], actors: Collection[Actor]
    ) -> tuple[dict[UUID, Row], Callable[..., bool]]:
        """Return the rows asked about, and a function that returns True if an actor sees a tenant."""
        rows = {row.pk: row for row in self.joined(set(ids))}
        return rows, sight(actors, {row.tenant_id for row in rows.values()})

    def read_changed(self, asked: Sequence[tuple[Actor, set[UUID]]]) -> list[list[str]]:
        rows, sees = self.rows_for((pk for _, ids in asked for pk in ids), [actor for actor, _ in asked])
        frame = self._frames_of(rows.values())
        return [
            [frame(rows[pk], actor) for pk in ids if pk in rows and sees(actor, rows[pk].tenant_id)]
            for actor, ids in asked
        ]

    def read_story(self, asked: Sequence[tuple[Actor, UUID, int]]) -> list[Story]:
        """Return per request row and next events, or NotThere. Rows are read first: no state precedes its events."""
        rows, sees = self.rows_for((pk for _, pk, _ in asked), [actor for actor, _, _ in asked])
        frame = self._frames_of(rows.values())
        wanted = {(pk, after) for _, pk, after in asked if pk in rows}
        events = {(pk, after): self._events(rows[pk], after) for pk, after in wanted}
        found: list[Story] = []
        for actor, pk, after in asked:
            row = rows.get(pk)
            try:
                there = self.require_there(actor, row if row and sees(actor, row.tenant_id) else None)
            except NotThere as refusal:
                found.append(refusal)
            else:
                found.append((frame(there, actor), events[pk, after]))
        return found

    def _frames_of(self, rows: Iterable[Row]) -> Callable[[Row, Actor], str]:
        """Return a function for a row's frame as text, made once for all to whom it looks the same."""
        describe, made = self.describing(rows), dict[tuple[UUID, Hashable], str]()

        def frame(row: Row, actor: Actor) -> str:
            key = row.pk, self.seen_as(row, actor)
            if key not in made:
                made[key] = json.dumps({"type": self.name, self.name: describe(row, actor)})
            return made[key]

        return frame

    def _events(self, row: Any, after: int) -> list[tuple[int, str]]:
        events = row.events.filter(number__gt=after).order_by("number")[:EVENTS_AT_ONCE]
        return [
            (event.number, json.dumps({"type": "event", "event": self.event_json(event)})) for event in events
        ]
