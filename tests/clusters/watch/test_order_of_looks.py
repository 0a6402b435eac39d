"""Order of looks when a lot is due at once: what somebody did, then what the clock and a list bring."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError

from clusters.mirror import Mirror
from clusters.models import Cluster
from clusters.watch import keeping
from clusters.watch.working import AWAY_SECONDS


def id_of(number: int) -> UUID:
    return UUID(int=number)


def keeper() -> keeping.Keeper:
    made = keeping.Keeper
    made.name, made.channel = "rows", "rows"
    kept = made(Cluster(slug="main"), Mirror(lambda: None))  # type: ignore[arg-type, return-value]
    kept._complete = True
    kept._due = {id_of(number) for number in range(1000)}
    kept._heard = {id_of(number) for number in (900, 2000)}
    return kept


def test_what_was_heard_of_is_looked_at_before_a_thousand_of_a_list() -> None:
    kept = keeper()
    first = {row for _ in range(2) for row in kept._take(clock_first=False)[0]}
    assert first == {id_of(900), id_of(2000)}
    assert id_of(900) not in kept._due  # one look answers both
    rest, _ = kept._take(clock_first=False)
    assert len(rest) == keeping.BATCH


def test_the_clock_comes_too_while_more_and_more_is_heard() -> None:
    rows, _ = keeper()._take(clock_first=True)
    assert len(rows) == keeping.BATCH and id_of(2000) not in rows


def test_no_row_is_looked_at_by_two_threads() -> None:
    kept = keeper()
    taken: list[UUID] = []
    while rows := kept._take(clock_first=len(taken) % 2 == 0)[0]:
        taken += rows
        if len(taken) == 1001:
            break
    assert len(taken) == len(set(taken)) == 1001


class Some(keeping.Keeper):
    """Keeper whose database is away at the first question, and whose cluster refuses one of two rows."""

    name, channel = "rows", "rows"

    def __init__(self) -> None:
        super().__init__(Cluster(slug="main"), Mirror(lambda: None))  # type: ignore[arg-type, return-value]
        self.answers: Iterator[Any] = iter((OperationalError("away"), [], []))

    def unsettled(self) -> Any:
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        return Cluster.objects.none()

    def after_list(self) -> Any:
        return self.unsettled()

    def look(self, taken: Collection[UUID]) -> Iterator[tuple[UUID, bool]]:
        for row in taken:
            yield row, row != id_of(1)


@pytest.mark.slow
def test_threads_with_nothing_to_do_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, over, asked = Some(), threading.Event(), list[bool]()
    kept._complete, kept._ticked_at = True, time.monotonic()

    def take(clock_first: bool) -> tuple[list[UUID], bool]:
        asked.append(clock_first)
        return keeping.Keeper._take(kept, clock_first)

    def keep() -> None:
        while not over.is_set():
            kept._keep(clock_first=False)

    monkeypatch.setattr(kept, "_take", take)
    threads = [threading.Thread(target=keep) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(1.5 * AWAY_SECONDS)
    over.set()
    for thread in threads:
        thread.join()
    assert len(asked) <= 16  # each waits a second for something to do


def test_what_failed_and_what_was_not_reached_comes_with_the_next_tick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keeping, "THREADS", 1)
    kept = Some()
    kept._heard = {id_of(1), id_of(2)}
    kept.listed()
    with pytest.raises(OperationalError):
        kept._keep(clock_first=False)
    assert (kept._looked_at, kept._again, kept._all) == (set(), {id_of(1), id_of(2)}, True)
    kept._keep(clock_first=False)  # follows the list up, and is the tick
    kept._keep(clock_first=False)
    assert (kept._looked_at, kept._again, kept._all, kept._due) == (set(), {id_of(1)}, False, set())
