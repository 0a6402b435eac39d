"""GPUs that runs had, and how busy they were. The room above has the figures, and registers who returns them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True)
class Devices:
    """GPUs of a run by their UUIDs. `use_percent`: mean over its time; None: nothing was measured of it alone."""

    uuids: tuple[str, ...] = ()
    use_percent: float | None = None


NONE = Devices()
Source = Callable[[Sequence[UUID]], Mapping[UUID, Devices]]
_sources: list[Source] = []


def register(source: Source) -> None:
    _sources.append(source)


def of(runs: Sequence[UUID]) -> dict[UUID, Devices]:
    """Return the GPUs of each run that some were reported of. A query for each source; none without runs."""
    found: dict[UUID, Devices] = {}
    for source in _sources if runs else ():
        found |= source(runs)
    return found
