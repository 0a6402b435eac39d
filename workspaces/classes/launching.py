"""Class launches: a workspace for each person of a list, by an owner of their tenant, from one launch.

The class and its people are rows, so a repeated request makes nothing twice. Each workspace is launched in a
transaction of its own: in the request what is due and takes no longer than SECONDS_OF_A_REQUEST, the rest on the tick:
after a sign-in, or once a booking begins.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import get_language, override
from django.utils.translation import gettext as _

from accounts.access import Actor, require_owner, role_in
from accounts.announcements.showing import maintenance, refuse_in_maintenance
from accounts.errors import Conflict, Invalid, NotAllowed, NotThere, Refusal
from accounts.locks import for_change, locked, one_at_a_time
from accounts.models import Membership, Role, Scope, Tenant, User
from accounts.trail import audit
from quotas.models import Booking
from storage.mounts import mounting
from workloads.asking import check_name
from workspaces.access import LAUNCHES
from workspaces.api.templates import Kept, TemplateLaunch
from workspaces.launch.launch import LaunchSpec, check, launch
from workspaces.models import ClassLaunch, Seat, Template

log = logging.getLogger(__name__)

MOST_PEOPLE = 200  # of a class
MOST_CLASSES = 100  # of a tenant
SECONDS_OF_A_REQUEST, SECONDS_OF_A_TICK = 10, 3
MOST_OF_A_TICK = 200
SETTINGS = ("body", "booking_id", "at_sign_in")


@dataclass(frozen=True, kw_only=True)
class ClassWish:
    """Request for a class. For a class that exists, None keeps what it has."""

    tenant: Tenant
    name: str
    people: Sequence[str] = ()
    kept: Kept | None = field(default=None, repr=False)
    template: Template | None = None
    booking: Booking | None = None
    at_sign_in: bool | None = None


def put(actor: Actor, wish: ClassWish) -> ClassLaunch:
    """Launch the class, or add people to the one of this name and try refused ones again. Raise a Refusal.

    A refusal that concerns one person is kept in their seat, and the others go on.
    """
    require(actor, wish.tenant)
    refuse_in_maintenance(actor)
    with transaction.atomic():
        alone(wish.tenant)
        row = ClassLaunch.objects.filter(tenant=wish.tenant, name=wish.name).first()
        row = _again(row, wish) if row else _new(actor, wish)
        row.by, row.stopped_at = actor.user, None
        row.save()
        _seat(row, wish.people)
        audit.record(
            actor, "class.launch", target=row, tenant=row.tenant, data={"people": len(set(wish.people))}
        )
    if connection.in_atomic_block:
        _hold_all(row)
    make_all(due().filter(class_launch=row), SECONDS_OF_A_REQUEST)
    return row


def require(actor: Actor, tenant: Tenant) -> None:
    """Refuse all but owners of the tenant, and admins."""
    require_owner(actor, tenant)
    actor.require(Scope.WORKSPACES)


def alone(tenant: Tenant) -> None:
    """Let one request or tick at a time change the classes of the tenant."""
    one_at_a_time(f"classes {tenant.pk}")


# --- The class and its people


def _new(actor: Actor, wish: ClassWish) -> ClassLaunch:
    if wish.kept is None:
        text = _("A class needs a template or a launch.")
        raise Invalid("invalid", text, _("Name one of them."), fields={"template": [text]})
    if faults := check_name(wish.name):
        text = _("The name of the class is not valid.")
        raise Invalid("invalid", text, " ".join(faults["name"]), fields=faults)
    if names := wish.kept.body.get("secret_names"):
        text = _("This template asks each person for secrets: %(names)s.") % {"names": ", ".join(names)}
        hint = _("Save one without secrets for the class.")
        raise Invalid("secrets_needed", text, hint, fields={"template": [text]})
    image, size = check(wish.tenant, replace(wish.kept.spec, name=wish.name))
    mounting.check(
        actor, wish.tenant, size.pool.cluster, wish.kept.spec.volumes, [image.home], [], lock=False
    )
    if wish.booking is not None:
        _refuse_unsuited(wish.booking, wish.tenant, size.pool.pk, size.units)
    if ClassLaunch.objects.filter(tenant=wish.tenant).count() >= MOST_CLASSES:
        text = _("A team has at most %(most)d class launches.") % {"most": MOST_CLASSES}
        raise Conflict("too_many_classes", text, _("Delete old ones: their workspaces stay."))
    return ClassLaunch(
        tenant=wish.tenant,
        name=wish.name,
        template=wish.template,
        body=wish.kept.body,
        booking=wish.booking,
        at_sign_in=bool(wish.at_sign_in),
    )


def _again(row: ClassLaunch, wish: ClassWish) -> ClassLaunch:
    """Return the class that there is. Raise a Conflict if the request asks for another one."""
    wanted = {
        "body": row.body if wish.kept is None else wish.kept.body,
        "booking_id": wish.booking.pk if wish.booking else row.booking_id,
        "at_sign_in": row.at_sign_in if wish.at_sign_in is None else wish.at_sign_in,
    }
    if any(getattr(row, name) != wanted[name] for name in SETTINGS):
        raise Conflict(
            "class_differs",
            _("There is a class “%(name)s” with other settings.") % {"name": row.name},
            _("Choose another name. To add people to that class, send its name and the people alone."),
            fields={"name": [_("Already taken.")]},
        )
    return row


def _refuse_unsuited(booking: Booking, tenant: Tenant, pool: object, units: int) -> None:
    if booking.tenant_id != tenant.pk:
        text = _("This booking belongs to another team.")
    elif booking.pool_id != pool or units > booking.units_each:
        text = _(
            "These workspaces do not fit into the booking: it has another pool, or fewer GPUs per place."
        )
    else:
        _refuse_over(booking)
        return
    raise Invalid("not_in_booking", text, _("Choose another booking or size."), fields={"booking": [text]})


def _refuse_over(booking: Booking) -> None:
    if booking.state in (Booking.State.OVER, Booking.State.CANCELLED):
        text = _("The booking “%(title)s” is over.") % {"title": booking.title}
        raise Conflict(
            "booking_over", text, _("Book again, or launch without a booking."), fields={"booking": [text]}
        )


def _seat(row: ClassLaunch, people: Sequence[str]) -> None:
    """Give each person a seat. A refused one is tried again."""
    names = list(dict.fromkeys(people))
    users = {user.username: user for user in User.objects.filter(username__in=names)}
    roles = dict(
        Membership.objects.filter(tenant=row.tenant, user__in=users.values()).values_list("user", "role")
    )
    seats = {seat.username: seat for seat in row.seats.all()}
    if len(seats.keys() | names) > MOST_PEOPLE:
        text = _("A class has at most %(most)d people.") % {"most": MOST_PEOPLE}
        raise Invalid(
            "too_many_people", text, _("Launch a second class for the others."), fields={"people": [text]}
        )
    new, changed = list[Seat](), list[Seat]()
    for name in names:
        seat = seats.get(name) or Seat(class_launch=row, username=name)
        if seat.workspace_id is not None:
            continue
        user = seat.user = users.get(name)
        if seat.due_at is None and not row.at_sign_in:
            seat.due_at = timezone.now()
        _keep(seat, _fault(row.tenant, name, user, roles.get(user.pk) if user else None))
        (changed if seat.pk else new).append(seat)
    Seat.objects.bulk_create(new)
    Seat.objects.bulk_update(changed, ["user", "due_at", "code", "message", "hint"])


def _keep(seat: Seat, refusal: Refusal | None) -> None:
    seat.code, seat.message, seat.hint = "", "", ""
    if refusal is not None:
        seat.code, seat.message = refusal.code, " ".join([refusal.message, *_details(refusal.fields)])
        seat.hint = refusal.hint


def _details(fields: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what is wrong with volumes: the refusal itself does not say it."""
    return list(fields.get("volumes", ()))


def _fault(tenant: Tenant, username: str, user: User | None, role: str | None) -> Refusal | None:
    """Return why the person gets no workspace in this tenant; None: they may have one."""
    names = {"name": username, "tenant": tenant.name}
    if user is None:
        text = _("There is no person “%(name)s”.") % names
        return NotThere("unknown_person", text, _("Check the name. They must sign in once first."))
    if not user.is_active:
        return NotAllowed(
            "deactivated", _("%(name)s is deactivated.") % names, _("Ask an admin to activate them.")
        )
    if role in LAUNCHES:
        return None
    if role == Role.VIEWER:
        text = _("%(name)s may only look in this team.") % names
        return NotAllowed("viewer_only_looks", text, _("Make them a member on the page of the team."))
    text = _("%(name)s is not a member of %(tenant)s.") % names
    return NotAllowed("not_a_member", text, _("Add them on the page of the team, then launch again."))


# --- Launches that are due


def due() -> QuerySet[Seat]:
    """Seats whose workspaces are to be launched now."""
    now = timezone.now()
    begun = Q(class_launch__booking=None) | Q(class_launch__booking__starts_at__lte=now)
    return _wanted().filter(begun, due_at__lte=now).order_by("due_at", "pk")


def _wanted() -> QuerySet[Seat]:
    return Seat.objects.filter(workspace=None, code="", class_launch__stopped_at=None)


@transaction.atomic
def on_sign_in(user: User) -> None:
    """Let the person's workspaces be launched that wait for their sign-in."""
    with transaction.atomic():
        for_change(_wanted().filter(user=user, due_at=None)).update(due_at=timezone.now())


def pass_due() -> None:
    """Launch what is due. A late or second call does the same. In maintenance all stays due, that of admins too."""
    if maintenance() is not None:
        return
    make_all(due(), SECONDS_OF_A_TICK)


def _hold_all(row: ClassLaunch) -> None:
    """Lock all people before what belongs to the first: with an Idempotency-Key all is one transaction
    (accounts/locks.py)."""
    users = list(locked(User.objects.filter(pk__in=row.seats.values("user"))).values_list("pk", flat=True))
    list(locked(Membership.objects.filter(tenant=row.tenant, user__in=users)).values_list("pk"))


def make_all(seats: QuerySet[Seat], seconds: float) -> None:
    """Launch one after the other for so long; the rest stays due."""
    until = monotonic() + seconds
    rows = seats.select_related("class_launch__by", "class_launch__booking", "class_launch__tenant", "user")
    specs: dict[Any, LaunchSpec] = {}
    for seat in rows[:MOST_OF_A_TICK]:
        try:
            make(seat, specs)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            log.exception("the workspace of seat %s could not be launched", seat.pk)
        if monotonic() > until:
            return


def make(seat: Seat, specs: dict[Any, LaunchSpec]) -> None:
    """Launch the workspace of one person, or keep why not."""
    row = seat.class_launch
    with transaction.atomic(), override((row.by and row.by.language) or get_language()):
        alone(row.tenant)
        if not _wanted().filter(pk=seat.pk).exists():
            return  # another process did it, or somebody stopped the class
        try:
            if row.pk not in specs:
                specs[row.pk] = _spec(row)
            seat.workspace = launch(_person(seat), specs[row.pk])
            _keep(seat, None)
        except Refusal as refusal:
            if refusal.code == "maintenance":
                return  # it stays due
            seat.workspace = None
            _keep(seat, refusal)
        seat.save(update_fields=["workspace", "code", "message", "hint"])


def _person(seat: Seat) -> Actor:
    """Return whose workspace it becomes. Raise a Refusal if they get none."""
    row, user = seat.class_launch, seat.user
    assert row.by is not None
    assert user is not None  # nothing is due for an unknown person
    if row.booking is not None:
        _refuse_over(row.booking)
        _refuse_full(row.booking)
    refuse_in_maintenance(Actor(row.by))
    roles = Membership.objects.filter(user=user, tenant=row.tenant).values_list("role", flat=True)
    if fault := _fault(row.tenant, user.username, user, roles.first()):
        raise fault
    return Actor(user)


def _spec(row: ClassLaunch) -> LaunchSpec:
    if row.by is None or not row.by.is_active or role_in(Actor(row.by), row.tenant) != Role.OWNER:
        text = _("The person who launched this class is no longer an owner of the team.")
        raise NotAllowed("not_an_owner", text, _("Launch the class again, as an owner."))
    body = TemplateLaunch(data=row.body)
    if not body.is_valid():
        text = _("What this class launches is no longer valid.")
        raise Invalid("invalid", text, _("Launch a class with another name."))
    kept = Kept.of(row.tenant.slug, body.validated_data)
    return replace(kept.spec, name=row.name, given_by=Actor(row.by))


def _refuse_full(booking: Booking) -> None:
    """Count workspaces of all classes on the booking."""
    taken = Seat.objects.filter(
        class_launch__booking=booking, workspace__isnull=False, workspace__deleted_at=None
    )
    if taken.count() >= booking.places:
        raise Conflict(
            "booking_full",
            _("All places of the booking “%(title)s” are taken.") % {"title": booking.title},
            _("Book more places, then launch again."),
        )
