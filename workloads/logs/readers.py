"""Readers of new lines: rooms above register them in their `apps.py`, and the collector calls them.

A reader gets each stored line once, in batches, inside the transaction that stores the batch: what it writes is there
if, and only if, the lines are. Lines of one container come in order. A reader must be quick, and make few queries for
a batch: no line is stored while it works.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Line:
    """Line of a container's log. `index` and `attempt` are 0 for a workspace."""

    holder_kind: str  # as in a claim: "workspace" or "job"
    holder_id: UUID
    run: UUID
    index: int
    attempt: int
    at: datetime
    text: str


Reader = Callable[[Sequence[Line]], None]

_readers: list[Reader] = []


def register(reader: Reader) -> None:
    _readers.append(reader)


def tell(lines: Sequence[Line]) -> None:
    """Hand new lines to all readers. A reader that fails loses its own writes, and holds up neither logs nor others.

    Raises OperationalError or InterfaceError if the database is away: nothing is stored, and all of it comes again.
    """
    if not lines:
        return
    for reader in _readers:
        try:
            with transaction.atomic():
                reader(lines)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            log.exception("a reader of logs failed: %s", reader)
