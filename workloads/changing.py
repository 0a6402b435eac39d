"""Change a workload's row under its lock: row, new events and the call to open pages in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TypeVar
from uuid import UUID

from django.db import transaction

from accounts.locks import locked
from workloads.models import Workload

Row = TypeVar("Row", bound=Workload)


@contextmanager
def changing(kind: type[Row], row_id: UUID, written: Callable[[Row], object]) -> Iterator[Row]:
    """Yield the row, locked; at the end save what differs and call `written`, which writes its new events.

    It makes no savepoint: an exception from here ends the caller's whole transaction.
    """
    with transaction.atomic(savepoint=False):
        row = locked(kind._default_manager.all()).get(pk=row_id)
        before = _values(row)
        yield row
        now = vars(row)
        if changed := [name for name, value in before.items() if now[name] != value]:
            row.save(update_fields=[*changed, "changed_at"])
            written(row)


def _values(row: Workload) -> dict[str, object]:
    values = vars(row)
    return {
        field.attname: deepcopy(value) if isinstance(value := values[field.attname], dict | list) else value
        for field in row._meta.concrete_fields
    }
