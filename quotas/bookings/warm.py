"""Images that nodes of a booking's pool pull before it begins. The room above knows them, and registers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID


@dataclass(frozen=True)
class WarmImage:
    """Image of a booking, and how many of the nodes have it. `problem`: {code, message, hint} of a failed pull."""

    image: str  # slug, or the reference of one that has no entry in the catalogue
    name: str
    nodes_ready: int
    nodes: int
    problem: dict[str, Any] | None = None


Reader = Callable[[Collection[UUID]], Mapping[UUID, Sequence[WarmImage]]]
_readers: list[Reader] = []


def register(reader: Reader) -> None:
    _readers.append(reader)


def images_of(bookings: Collection[UUID]) -> dict[UUID, Sequence[WarmImage]]:
    """Return the images of each booking that has some, the likeliest first."""
    return {booking: found for reader in _readers for booking, found in reader(bookings).items()}
