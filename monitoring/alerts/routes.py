"""Routes: made, changed, tested and deleted by admins, and by owners for their own tenant within bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor, require_owner, tenant_by_slug
from accounts.credentials.secrets import encrypt
from accounts.errors import Conflict, Invalid
from accounts.locks import locked
from accounts.models import Membership, Scope, Tenant, User
from accounts.trail import audit
from clusters.models import Cluster
from monitoring.alerts import passes
from monitoring.alerts.ways import SECRET_PREFIX, sign
from monitoring.models import AlertDelivery, AlertRoute, Severity
from quotas.models import Pool

Way = AlertRoute.Way
MOST_OF_A_TENANT = 10
MOST_WAITING_TESTS = 3
LONGEST_ADDRESS = 1024
PRINTABLE = re.compile(r"[!-~]+")
FOR_ADMINS = (Way.ADMINS, Way.HEARTBEAT)
# What a caller may set, by its name in the API.
PLAIN = ("name", "way", "escalates_after_minutes", "every_minutes")


def create(actor: Actor, values: Mapping[str, Any]) -> AlertRoute:
    """Make a route. `values` as the API takes them; an owner has to name the tenant."""
    tenant = tenant_by_slug(actor, values["tenant"]) if values.get("tenant") else None
    if tenant is None:
        actor.require(Scope.ADMIN)
    else:
        require_owner(actor, tenant)
    with transaction.atomic():
        if tenant is not None:
            list(locked(Tenant.objects.filter(pk=tenant.pk)).values_list("pk"))  # one at a time
            _check_room(tenant)
        row = AlertRoute(way=values["way"], tenant=tenant, created_by=actor.user)
        _apply(actor, row, values)
        row.save(force_insert=True)
        _record(actor, row, "create", values)
    return row


def change(actor: Actor, route: AlertRoute, values: Mapping[str, Any]) -> bool:
    """Change what is given; an address or secret that is not given stays. False: nothing to change."""
    _require(actor, route)
    with transaction.atomic():
        row = locked(AlertRoute.objects.filter(pk=route.pk)).get()
        if values.get("way", row.way) != row.way:
            raise _invalid("way", _("The way of a route cannot be changed. Create another route."))
        before = {field.attname: getattr(row, field.attname) for field in AlertRoute._meta.fields}
        _apply(actor, row, values)
        if all(getattr(row, name) == value for name, value in before.items()):
            return False
        row.save()
        _record(actor, row, "change", values)
    return True


def delete(actor: Actor, route: AlertRoute) -> None:
    """Delete the route with its deliveries. The one to all admins can only be disabled."""
    _require(actor, route)
    if route.way == Way.ADMINS:
        raise Conflict(
            "default_route",
            _("The mail to all admins cannot be deleted."),
            _("Disable the route instead."),
        )
    with transaction.atomic():
        _record(actor, route, "delete", {})
        route.delete()


def test(actor: Actor, route: AlertRoute) -> AlertDelivery:
    """Send a test by the route: to the actor, if it mails all admins."""
    _require(actor, route)
    if route.way == Way.HEARTBEAT:
        raise Conflict(
            "no_test",
            _("A heartbeat has no test."),
            _("Its last call is shown with the route."),
        )
    waiting = AlertDelivery.objects.filter(route=route, alert=None, state=AlertDelivery.State.WAITING)
    if waiting.count() >= MOST_WAITING_TESTS:
        raise Conflict(
            "tests_wait",
            _("Tests of this route are waiting to be sent already."),
            _("See their last error."),
        )
    with transaction.atomic():
        delivery = AlertDelivery.objects.create(
            route=route,
            recipient=actor.user if route.way == Way.ADMINS else None,
            occasion=AlertDelivery.Occasion.TEST,
            due_at=timezone.now(),
        )
        _record(actor, route, "test", {})
    passes.want_sending()
    return delivery


def _require(actor: Actor, route: AlertRoute) -> None:
    if route.tenant is None:
        actor.require(Scope.ADMIN)
    else:
        require_owner(actor, route.tenant)


def _check_room(tenant: Tenant) -> None:
    if AlertRoute.objects.filter(tenant=tenant).count() >= MOST_OF_A_TENANT:
        raise Invalid(
            "too_many_routes",
            _("This tenant has %(most)s alert routes, the most that are possible.")
            % {"most": MOST_OF_A_TENANT},
            _("Delete one that you do not need."),
        )


def _apply(actor: Actor, row: AlertRoute, values: Mapping[str, Any]) -> None:
    for name in PLAIN:
        if name in values:
            setattr(row, name, values[name])
    row.is_enabled = values.get("enabled", row.is_enabled)
    if "least_severity" in values:
        row.least_severity = Severity[values["least_severity"].upper()]
    if "cluster" in values:
        row.cluster = _named(Cluster, "cluster", values["cluster"])
    if "pool" in values:
        row.pool = _named(Pool, "pool", values["pool"])
    if values.get("may_reach_inside", row.may_reach_inside) != row.may_reach_inside:
        actor.require(Scope.ADMIN)
        row.may_reach_inside = values["may_reach_inside"]
    _check_way(row)
    before = row.address
    _set_address(row, values)
    if row.address != before and not actor.is_admin:
        row.may_reach_inside = False  # an admin allowed the other address
    if (secret := values.get("secret")) is not None:
        _check_secret(secret)
        row.secret = encrypt(secret) if secret else ""


def _check_way(row: AlertRoute) -> None:
    if row.way in FOR_ADMINS and row.tenant_id is not None:
        raise _invalid("way", _("A route of a tenant cannot be of this kind."))
    if row.way == Way.ADMINS and AlertRoute.objects.filter(way=Way.ADMINS).exclude(pk=row.pk).exists():
        raise _invalid("way", _("There is one route of this kind already."))


def _named(model: Any, field: str, slug: str | None) -> Any:
    if not slug:
        return None
    found = model.objects.filter(slug=slug).first() if "\0" not in slug else None
    if found is None:
        raise _invalid(field, _("There is no such thing here."))
    return found


def _set_address(row: AlertRoute, values: Mapping[str, Any]) -> None:
    address = values.get("address") or ""
    if row.way == Way.ADMINS:
        return
    if not address:
        if not row.address:
            raise _invalid("address", _("An address is needed."))
        return
    row.host = _mail_host(row, address) if row.way == Way.MAIL else _web_host(address)
    row.address = encrypt(address)


def _mail_host(row: AlertRoute, address: str) -> str:
    try:
        validate_email(address)
    except ValidationError:
        raise _invalid("address", _("This is not a mail address.")) from None
    if row.tenant_id is not None and not is_of_member(row.tenant_id, address):
        raise _invalid("address", _("The mail address has to be one of a member of the tenant."))
    return address[:254]


def is_of_member(tenant_id: UUID, address: str) -> bool:
    """Return True if the mail address is one of an active member of the tenant."""
    people = User.objects.filter(email__iexact=address, is_active=True)
    return Membership.objects.filter(tenant=tenant_id, user__in=people).exists()


def _web_host(address: str) -> str:
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    is_fit = (
        parts.scheme in ("https", "http")
        and host
        and not parts.username
        and not parts.password
        and len(address) <= LONGEST_ADDRESS
        and PRINTABLE.fullmatch(address)
    )
    if not is_fit:
        raise _invalid("address", _("Use a whole address: https://host/path, without user and password."))
    return host[:254]


def _check_secret(secret: str) -> None:
    try:
        fits = not secret or (len(secret) <= 200 and bool(PRINTABLE.fullmatch(secret)))
        if secret.startswith(SECRET_PREFIX):
            sign(secret, "", 0, b"")
    except ValueError:
        fits = False
    if not fits:
        raise _invalid("secret", _("Use up to 200 plain characters; after whsec_, base64."))


def _invalid(field: str, text: str) -> Invalid:
    return Invalid("invalid", _("This route cannot be saved."), _("See the fields."), fields={field: [text]})


def _record(actor: Actor, row: AlertRoute, verb: str, values: Mapping[str, Any]) -> None:
    """Record the change: of the address the host alone, of the secret that there is another."""
    told = {"way": row.way, "host": row.host, "fields": sorted(values)} if values else {"way": row.way}
    target = None if verb == "delete" else row
    data = {"name": row.name, **told}
    audit.record(actor, f"alert_route.{verb}", target=target, tenant=row.tenant, data=data)
