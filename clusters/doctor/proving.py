"""Proof of isolation, asked for by doctor's command and pages. A room above knows how, and registers itself."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from accounts.access import Actor
from clusters.models import Cluster


class Prover(Protocol):
    def start(self, actor: Actor | None, cluster: Cluster, image: str = "") -> UUID:
        """Start a proof; return its id. Raise Conflict if none can start now."""

    def wait(self, proof_id: UUID) -> None:
        """Wait for the end of a proof, and carry it on here if no worker does."""

    def last(self, cluster: Cluster) -> str:
        """Return the last result in a sentence."""


_provers: list[Prover] = []


def register(prover: Prover) -> None:
    _provers[:] = [prover]


def prover() -> Prover:
    return _provers[0]
