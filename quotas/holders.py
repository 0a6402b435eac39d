"""Holders of claims. A room above registers one `Holder` per kind of holder: how quotas ask it, and what it does.

Its methods are called inside the transaction that changes the claim. One that updates the holder's row locks that row
after the claim's: see the order in `admission.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet
from django.dispatch import Signal

from accounts.models import User
from quotas import enqueue, signals
from quotas.models import Claim


class Holder(Protocol):
    """Kind of holder, such as workspaces."""

    def names(self, holders: set[UUID]) -> dict[UUID, str]:
        """Return the names of those holders that are of this kind, by id."""

    def page(self, holder: UUID) -> str:
        """Return the address of a holder's page."""

    def affinities(self, holders: set[UUID]) -> dict[UUID, list[dict[str, Any]]]:
        """Return the node affinities of these holders' volumes that are bound to nodes, by holder."""

    def volumes_changed(self, holders: set[UUID]) -> None:
        """Look again at those of these holders whose runs are being started."""

    def admitted(self, claim: Claim) -> None:
        """Begin the run."""

    def waits(self, claim: Claim) -> None:
        """Show why the claim waits: the reason changed, or it was sent back to the queue."""

    def standing_changed(self, claims: list[Claim]) -> None:
        """Show the claims' new positions in the queue and forecasts."""

    def to_stop(self, claim: Claim, code: str) -> None:
        """End the run: the claim must give its units back."""

    def preempted(self, claim: Claim) -> None:
        """Announce that the run ends at `reclaim_at`."""

    def preemption_cancelled(self, claim: Claim) -> None:
        """Announce that the run may continue."""

    def ends_by_budget(self, claim: Claim) -> None:
        """Announce that the run ends at `budget_ends_at`, for its budget is spent; None: it may continue after all."""

    def released(self, claim: Claim) -> None:
        """Note that the claim has ended."""

    def drain(self, claim: Claim) -> bool:
        """Stop the run, because its node is drained. Return False if it is over or ending already."""


_holders: dict[str, Holder] = {}


def register(kind: Claim.Holder, holder: Holder) -> None:
    _holders[kind] = holder


def drain(claim: Claim) -> bool:
    """Stop the claim's holder, because its node is drained. Return False if it is over or ending already."""
    holder = _holders.get(claim.holder_kind)
    return holder is not None and holder.drain(claim)


def names_of(claims: Iterable[Claim]) -> dict[UUID, str]:
    """Return the names of the claims' holders, by the holders' ids."""
    names: dict[UUID, str] = {}
    for kind, holders in _by_kind(claims).items():
        if kind in _holders:
            names |= _holders[kind].names(holders)
    return names


def page_of(claim: Any) -> str:
    """Return the address of the page of a claim's holder, or ""."""
    holder = _holders.get(claim.holder_kind)
    return holder.page(claim.holder_id) if holder else ""


def affinities_of(claims: Iterable[Any]) -> dict[UUID, list[dict[str, Any]]]:
    """Return the node affinities of the volumes of the claims' holders, by the holders' ids. A query for each kind."""
    found: dict[UUID, list[dict[str, Any]]] = {}
    for kind, holders in _by_kind(claims).items():
        if kind in _holders:
            found |= _holders[kind].affinities(holders)
    return found


def volumes_changed(of: Iterable[UUID]) -> None:
    """Let those who mount a volume go on, now that there is news of it: their runs, and their claims in the queue."""
    if not (ids := set(of)):
        return
    waiting = Claim.objects.filter(holder_id__in=ids, state=Claim.State.WAITING)
    for pool in set(waiting.values_list("pool_id", flat=True)):
        enqueue.admission_pass(pool)
    for holder in _holders.values():
        holder.volumes_changed(ids)


def _by_kind(claims: Iterable[Any]) -> dict[str, set[UUID]]:
    by_kind: dict[str, set[UUID]] = {}
    for claim in claims:
        if claim.holder_id is not None:  # else it is not requested yet
            by_kind.setdefault(claim.holder_kind, set()).add(claim.holder_id)
    return by_kind


# --- Signals about a claim reach its kind of holder

REACTIONS: tuple[tuple[Signal, Callable[..., Any]], ...] = (
    (signals.claim_admitted, Holder.admitted),
    (signals.claim_waits, Holder.waits),
    (signals.claim_to_stop, Holder.to_stop),
    (signals.claim_preempted, Holder.preempted),
    (signals.claim_preemption_cancelled, Holder.preemption_cancelled),
    (signals.claim_ends_by_budget, Holder.ends_by_budget),
    (signals.claim_released, Holder.released),
)


def connect() -> None:
    for signal, method in REACTIONS:
        signal.connect(partial(_react, method.__name__), weak=False, dispatch_uid="quotas.holders")
    signals.standing_changed.connect(_on_standing_changed, dispatch_uid="quotas.holders")


def _react(method: str, *, claim: Claim, code: str | None = None, **_: Any) -> None:
    if holder := _holders.get(claim.holder_kind):
        getattr(holder, method)(claim, *([] if code is None else [code]))


def _on_standing_changed(*, claims: Iterable[Claim], **_: Any) -> None:
    claims = list(claims)
    for kind, holder in _holders.items():
        if of_kind := [claim for claim in claims if claim.holder_kind == kind]:
            holder.standing_changed(of_kind)


def busy(users: QuerySet[User]) -> QuerySet[User]:
    """Return those of these users who have a claim that waits or is admitted."""
    claims = Claim.objects.filter(user=OuterRef("pk")).exclude(state=Claim.State.RELEASED)
    return users.filter(Exists(claims))
