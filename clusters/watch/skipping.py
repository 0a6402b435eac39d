"""Objects that cannot be read or written are skipped, each by itself: its row stays as it was, it is logged and
counted, and tried again when it changes or everything is listed anew.

A database that is away is no object's fault and is raised. What an error says stays out of the log: it may quote the
object, and anybody may write a secret into an annotation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from django.db import DataError, Error, transaction

from clusters import measures
from clusters.transport import Json

logger = logging.getLogger(__name__)

LONGEST_NAME = 253

Values = TypeVar("Values")


@dataclass(frozen=True)
class Unread:
    """Listed object that cannot be read."""

    uid: str
    name: str


@contextmanager
def skip_on_error(cluster: str, kind: str, body: Json) -> Iterator[None]:
    """Skip the object if the block fails on it, so that later objects are still handled."""
    try:
        yield
    except Exception as error:
        if not is_objects_fault(error):
            raise
        skip(cluster, kind, _metadata(body), type(error).__name__)


def reading(cluster: str, kind: str, read: Callable[[Json], Values]) -> Callable[[Json], Values | Unread]:
    def read_or_skip(body: Json) -> Values | Unread:
        try:
            return read(body)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is in this object)
            metadata = _metadata(body)
            skip(cluster, kind, metadata, type(error).__name__)
            return Unread(str(metadata.get("uid")), str(metadata.get("name")))

    return read_or_skip


def refused(write: Callable[[list[Values]], None], rows: list[Values]) -> list[tuple[Values, str]]:
    """Write all rows at once; if the database refuses, write by halves. Return the refused rows, each with why."""
    try:
        with transaction.atomic():
            write(rows)
    except Exception as error:
        if not is_objects_fault(error):
            raise
        if len(rows) == 1:
            return [(rows[0], type(error).__name__)]
        middle = len(rows) // 2
        return refused(write, rows[:middle]) + refused(write, rows[middle:])
    return []


def is_objects_fault(error: Exception) -> bool:
    """Return True if the object is at fault: its values are refused, or reading them failed."""
    return isinstance(error, DataError) or not isinstance(error, Error)


def skip(cluster: str, kind: str, metadata: Json, why: str) -> None:
    measures.SKIPPED.count(cluster, kind)
    where = [str(metadata[part])[:LONGEST_NAME] for part in ("namespace", "name") if metadata.get(part)]
    logger.warning("%s: skipped %s %r: %s", cluster, kind, "/".join(where), why)


def _metadata(body: Json) -> Json:
    metadata = body.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
