"""Service accounts whose tokens work: those for which an active owner of their tenant, or an admin, answers."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

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


def lapsed(responsible: User) -> QuerySet[Any]:
    """Service accounts for which this person was the one to answer, and no longer can."""
    return accounts(User.objects.filter(responsible=responsible)).filter(works=False)
