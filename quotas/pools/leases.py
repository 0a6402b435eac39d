"""Leases on volumes, as the room above knows them: what claims ask for, and what runs hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol
from uuid import UUID

from quotas.scheduling.state import Lease


class Book(Protocol):
    def wanted(self, holders: Collection[UUID]) -> Mapping[UUID, tuple[Lease, ...]]:
        """Return the leases that runs of these holders need, by holder."""

    def held(self, volumes: Collection[UUID]) -> tuple[Lease, ...]:
        """Return the leases on these volumes that admitted claims hold: until the end of their pods is proven."""


_books: list[Book] = []


def register(book: Book) -> None:
    _books.append(book)


def wanted(holders: Collection[UUID]) -> dict[UUID, tuple[Lease, ...]]:
    return {holder: leases for book in _books for holder, leases in book.wanted(holders).items()}


def held(wanted: Mapping[UUID, tuple[Lease, ...]]) -> tuple[Lease, ...]:
    """Return what is held of the wanted volumes. No query if none is wanted."""
    volumes = {lease.volume for leases in wanted.values() for lease in leases}
    return tuple(lease for book in _books for lease in book.held(volumes)) if volumes else ()
