"""Storage promised to tenants, over all rooms that promise some, and its limits: in all, by kind, and by person."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from django.utils.translation import gettext_lazy

from accounts.errors import Invalid
from accounts.locks import locked
from accounts.models import Tenant, User
from quotas.models import TenantLimit


class Promise(NamedTuple):
    """Storage of one kind that a person has in a tenant, in MiB. `person`: None counts for the tenant alone."""

    tenant: UUID
    person: Any
    kind: str
    mib: int


class Limit(NamedTuple):
    """Code and sentence of the refusal above a limit."""

    code: str
    text: Any


TENANT, PERSON = "storage_mib", "person_storage_mib"
BY_KIND = {"home": "homes_mib", "disk": "disks_mib", "dataset": "datasets_mib"}
# By field of TenantLimit, in the order in which they are checked.
LIMITS = {
    TENANT: Limit(
        "above_storage_limit",
        gettext_lazy("%(tenant)s uses %(used)s of %(limit)s GiB of storage. This needs %(asked)s GiB."),
    ),
    "homes_mib": Limit(
        "above_homes_limit",
        gettext_lazy("%(tenant)s uses %(used)s of %(limit)s GiB for homes. This needs %(asked)s GiB."),
    ),
    "disks_mib": Limit(
        "above_disks_limit",
        gettext_lazy("%(tenant)s uses %(used)s of %(limit)s GiB for local disks. This needs %(asked)s GiB."),
    ),
    "datasets_mib": Limit(
        "above_datasets_limit",
        gettext_lazy("%(tenant)s uses %(used)s of %(limit)s GiB for datasets. This needs %(asked)s GiB."),
    ),
    PERSON: Limit(
        "above_person_storage_limit",
        gettext_lazy(
            "%(person)s uses %(used)s of the %(limit)s GiB of storage that one person may have in %(tenant)s. "
            "This needs %(asked)s GiB."
        ),
    ),
}

Promised = Callable[[Collection[UUID]], Iterable[Promise]]
_rooms: list[Promised] = []


def register(promised: Promised) -> None:
    """Ask this room, too: it returns what it promised to these tenants."""
    _rooms.append(promised)


def promises_to(tenants: Collection[UUID]) -> list[Promise]:
    """Return all storage promised to these tenants. One query for each room."""
    return [one for promised in _rooms for one in promised(tenants)]


def storage_of(tenants: Collection[UUID], person: Any = None) -> dict[UUID, dict[str, int]]:
    """Return the MiB that count towards each limit, by tenant; those of one person for this `person`."""
    promises: dict[UUID, list[Promise]] = {tenant: [] for tenant in tenants}
    for one in promises_to(tenants):
        promises[one.tenant].append(one)
    return {tenant: amounts(found, person) for tenant, found in promises.items()}


def amounts(promises: Iterable[Promise], person: Any) -> dict[str, int]:
    """Return the MiB of a tenant's promises that count towards each limit."""
    found = dict.fromkeys(LIMITS, 0)
    for one in promises:
        found[TENANT] += one.mib
        if one.kind in BY_KIND:
            found[BY_KIND[one.kind]] += one.mib
        if one.person is not None and one.person == person:
            found[PERSON] += one.mib
    return found


def exceeded(most: Mapping[str, int | None], used: Mapping[str, int], asked: Mapping[str, int]) -> str | None:
    """Return the first limit that the request would exceed; None if there is room. No limit refuses 0 MiB."""
    for name in LIMITS:
        limit = most[name]
        if asked[name] > 0 and limit is not None and used[name] + asked[name] > limit:
            return name
    return None


def lock(tenant: Tenant) -> None:
    """Take the lock of `refuse_beyond` before those of workspaces and volumes, later in the order of locks."""
    list(locked(TenantLimit.objects.filter(tenant=tenant)).values_list("pk"))


def refuse_beyond(
    tenant: Tenant, person: User, asked: Mapping[str, int], *, hint: str, field: str = ""
) -> None:
    """Raise Invalid if this person's new storage, in MiB by kind, is above a limit.

    Locks the limits, so that promises at the same time count each other. `field`: what was chosen too large.
    """
    promises = [Promise(tenant.pk, person.pk, kind, mib) for kind, mib in asked.items()]
    _refuse(tenant, person, amounts(promises, person.pk), hint, field)


def refuse_another_owner(tenant: Tenant, person: User, mib: int, *, hint: str, field: str) -> None:
    """Raise Invalid if the tenant's storage would become this person's above their limit. Locks as `refuse_beyond`."""
    _refuse(tenant, person, dict.fromkeys(LIMITS, 0) | {PERSON: mib}, hint, field)


def _refuse(tenant: Tenant, person: User, asked: Mapping[str, int], hint: str, field: str) -> None:
    limit = TenantLimit.of(tenant)
    if limit is None or all(getattr(limit, name) is None for name in LIMITS):
        return
    most = locked(TenantLimit.objects.filter(tenant=tenant)).values(*LIMITS).first()
    if most is None:
        return
    used = storage_of([tenant.pk], person.pk)[tenant.pk]
    name = exceeded(most, used, asked)
    if name is None:
        return
    amounts_mib = {"used": used[name], "asked": asked[name], "limit": most[name]}
    text = LIMITS[name].text % {
        "tenant": tenant.name,
        "person": person.get_username(),
        **{what: f"{round(mib / 1024, 2):.12g}" for what, mib in amounts_mib.items()},
    }
    raise Invalid(LIMITS[name].code, text, hint, fields={field: [text]} if field else {})
