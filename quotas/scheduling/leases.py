"""Volumes that runs hold, and those that earlier claims wait for. No two runs that exclude each other are admitted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from uuid import UUID

from .state import Lease, Reason, Waiting

MOST_NAMES = 5


class Leases:
    def __init__(self, held: Iterable[Lease]) -> None:
        self._taken: defaultdict[UUID, list[Lease]] = defaultdict(list)
        for lease in held:
            self._taken[lease.volume].append(lease)

    def in_the_way(self, claim: Waiting) -> Reason | None:
        """Return which of its volumes the claim has to wait for, and for whom; None if it may have them all."""
        for lease in claim.leases:
            if lease.is_being_made:
                return Reason("volume_being_made", {"volume": lease.name})
            if nodes := [node for other in self._taken[lease.volume] for node in other.nodes]:
                return Reason(
                    "volume_still_attached", {"volume": lease.name, "on": sorted(nodes)[:MOST_NAMES]}
                )
            others = {other.holder_name for other in self._taken[lease.volume] if lease.excludes(other)}
            if others:
                return Reason("volume_in_use", {"volume": lease.name, "by": sorted(others)[:MOST_NAMES]})
        return None

    def take(self, claim: Waiting) -> None:
        for lease in claim.leases:
            self._taken[lease.volume].append(lease)
