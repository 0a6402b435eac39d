"""Tests that exactly one process leads, and that losing the connection loses the lead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

from clusters.watch.leadership import LOCK, Leadership
from devcluster.testing.waiting import until

pytestmark = pytest.mark.django_db


@pytest.fixture
def two() -> Iterator[tuple[Leadership, Leadership]]:
    first, second = Leadership(), Leadership()
    yield first, second
    first.give_up()
    second.give_up()


def end_holder() -> None:
    """End the leader's connection, as a restart of the database or a cut network does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND (classid::bigint << 32 | objid::bigint) = %s",
            [LOCK],
        )
        assert cursor.fetchall() == [(True,)]


def test_one_leads_and_the_other_stands_by(two: tuple[Leadership, Leadership]) -> None:
    first, second = two
    assert first.take() is True
    assert second.take() is False
    assert first.still_held() is True


def test_the_other_takes_over_when_the_first_gives_up(two: tuple[Leadership, Leadership]) -> None:
    first, second = two
    first.take()
    first.give_up()
    assert first.still_held() is False
    # The server sees the end of a connection a moment after it was closed.
    until(second.take)


def test_a_lost_connection_ends_the_lead_and_is_noticed(two: tuple[Leadership, Leadership]) -> None:
    first, second = two
    first.take()
    end_holder()
    assert second.take() is True
    assert first.still_held() is False
    assert first.take() is False
    assert second.still_held() is True
