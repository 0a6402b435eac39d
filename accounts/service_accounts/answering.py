"""Service accounts whose tokens work: those for which an active owner of their tenant, or an admin, answers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from accounts.locks import locked
from accounts.models import Membership, Role, User


def accounts(among: QuerySet[Any]) -> QuerySet[Any]:
    """Service accounts among these users that were not deleted, with `works`."""
    owners = Membership.objects.filter(
        user=OuterRef("responsible"), tenant=OuterRef("service_of"), role=Role.OWNER, user__is_active=True
    )
    admins = User.objects.filter(pk=OuterRef("responsible"), is_active=True, is_staff=True)
    annotated: QuerySet[Any] = among.annotate(works=Exists(owners) | Exists(admins))
    return annotated.filter(service_of__isnull=False, is_active=True)


def works(account: User) -> bool:
    return accounts(User.objects.filter(pk=account.pk)).filter(works=True).exists()


def note_lapses(people: Collection[User]) -> set[User]:
    """Note since when nobody answers for the service accounts of these people, and for those among them. Return the
    accounts that stopped working with this change."""
    ids = [person.pk for person in people]
    rows = accounts(User.objects.filter(Q(responsible__in=ids) | Q(pk__in=ids)))
    if not (found := {account.pk: account for account in rows}):
        return set()
    memberships = locked(Membership.objects.filter(user__in=found))
    changed = [row for row in memberships if found[row.user_id].works == (row.lapsed_at is not None)]
    now = timezone.now()
    for row in changed:
        row.lapsed_at = None if found[row.user_id].works else now
    Membership.objects.bulk_update(changed, ["lapsed_at"])
    return {found[row.user_id] for row in changed if row.lapsed_at is not None}
