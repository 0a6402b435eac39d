"""Readers of new lines: each hears a batch once, and none can hold up another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.db import OperationalError

from accounts.models import Tenant
from workloads.logs import readers
from workloads.logs.readers import Line

pytestmark = pytest.mark.django_db


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> list[readers.Reader]:
    there: list[readers.Reader] = []
    monkeypatch.setattr(readers, "_readers", there)
    return there


def lines(*texts: str) -> list[Line]:
    return [Line("job", uuid4(), uuid4(), 0, 1, datetime(2026, 11, 27, tzinfo=UTC), text) for text in texts]


def test_every_reader_gets_the_batch(registered: list[readers.Reader]) -> None:
    heard: list[Sequence[Line]] = []
    readers.register(heard.append)
    readers.register(heard.append)
    readers.tell(batch := lines("a", "b"))
    readers.tell([])
    assert heard == [batch, batch]


def test_a_reader_that_fails_loses_its_own_writes_alone(registered: list[readers.Reader]) -> None:
    def writes(batch: Sequence[Line]) -> None:
        Tenant.objects.create(slug="kept", name="kept")

    def fails(batch: Sequence[Line]) -> None:
        Tenant.objects.create(slug="lost", name="lost")
        raise ValueError

    registered += [writes, fails]
    readers.tell(lines("a"))
    assert list(Tenant.objects.values_list("slug", flat=True)) == ["kept"]


def test_a_database_that_is_away_is_not_swallowed(registered: list[readers.Reader]) -> None:
    def is_away(batch: Sequence[Line]) -> None:
        raise OperationalError

    registered.append(is_away)
    with pytest.raises(OperationalError):
        readers.tell(lines("a"))
