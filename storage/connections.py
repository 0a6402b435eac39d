"""Connections: named buckets whose keys arrive as secret environment in the workspaces that their owner chooses.

Berth never calls an endpoint. A change arrives at the next start of a workspace; a deleted connection is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.access import Actor, tenant_by_slug, visible_tenants
from accounts.credentials.secrets import decrypt, encrypt
from accounts.errors import Conflict, Invalid, NotThere
from accounts.locks import locked
from accounts.models import Scope, Tenant, User
from accounts.trail import audit

from .access import require_create
from .models import Connection, ConnectionUse

MOST_OF_A_PERSON = 50  # in one tenant
MOST_OF_A_RUN = 10
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
KEY = re.compile(r"[!-~]{1,512}")
KEYS = ("access_key", "secret_key")


def visible(actor: Actor) -> QuerySet[Connection]:
    """Return the actor's own, in the tenants that they see: nobody shares keys."""
    rows = Connection.objects.filter(owner=actor.user, tenant__in=visible_tenants(actor))
    return rows.select_related("tenant").order_by("tenant", "name", "pk")


def get(actor: Actor, connection_id: UUID) -> Connection:
    found = visible(actor).filter(pk=connection_id).first()
    if found is None:
        raise NotThere("not_found", _("There is no such connection."), _("Look in the list of connections."))
    return found


def create(actor: Actor, tenant: str, values: Mapping[str, str]) -> Connection:
    """Create a connection of the actor's own. `values`: name, endpoint, bucket, access_key, secret_key."""
    place = tenant_by_slug(actor, tenant)
    with _unique(values["name"]):
        list(locked(User.objects.filter(pk=actor.user.pk)).values_list("pk"))  # one at a time
        require_create(actor, place)
        _check(values)
        if Connection.objects.filter(tenant=place, owner=actor.user).count() >= MOST_OF_A_PERSON:
            text = _("You have %(most)s connections in this tenant, the most that are possible.")
            raise Invalid(
                "too_many_connections",
                text % {"most": MOST_OF_A_PERSON},
                _("Delete one that you do not need."),
            )
        row = Connection(tenant=place, owner=actor.user, keys=_sealed(values))
        row.name, row.endpoint, row.bucket = values["name"], values["endpoint"], values["bucket"]
        row.save(force_insert=True)
        _record(actor, row, "create")
    return row


def change(actor: Actor, connection: Connection, values: Mapping[str, str]) -> bool:
    """Change what is given; a key that is not given stays. False: it is so already."""
    actor.require(Scope.VOLUMES)
    with _unique(values.get("name", connection.name)):
        row = locked(Connection.objects.filter(pk=connection.pk)).get()
        before = {"name": row.name, "endpoint": row.endpoint, "bucket": row.bucket, **_opened(row)}
        wanted = before | dict(values)
        if wanted == before:
            return False
        _check(wanted)
        row.name, row.endpoint, row.bucket = wanted["name"], wanted["endpoint"], wanted["bucket"]
        row.keys = _sealed(wanted)
        row.save()
        _record(actor, row, "change")
    return True


def delete(actor: Actor, connection: Connection) -> None:
    """Forget the connection. Workspaces that run keep what they have; their next start is without it."""
    actor.require(Scope.VOLUMES)
    with transaction.atomic():
        _record(actor, connection, "delete")
        connection.delete()


# --- for runs


def use(actor: Actor, tenant: Tenant, holder: UUID, chosen: Sequence[UUID]) -> None:
    """Let the runs of a new holder have these connections of the actor's. Raise Invalid for what is not theirs."""
    if not chosen:
        return
    found = {row.pk: row for row in visible(actor).filter(pk__in=chosen, tenant=tenant)}
    faults = [
        _("There is no connection %(id)s in this tenant.") % {"id": pk} for pk in chosen if pk not in found
    ]
    if len(set(chosen)) > MOST_OF_A_RUN:
        faults.append(_("At most %(most)s connections can be used.") % {"most": MOST_OF_A_RUN})
    if faults:
        hint = _("See your connections under Storage.")
        raise Invalid("invalid", _("Some connections cannot be used."), hint, fields={"connections": faults})
    uses = [ConnectionUse(connection=found[pk], holder=holder) for pk in dict.fromkeys(chosen)]
    ConnectionUse.objects.bulk_create(uses)


def used_by(actor: Actor, holder: UUID) -> list[UUID]:
    """Return what a holder uses of the actor's connections, in order."""
    rows = ConnectionUse.objects.filter(holder=holder, connection__owner=actor.user)
    return list(rows.values_list("connection_id", flat=True))


def forget(holder: UUID) -> None:
    """Forget what a deleted holder used."""
    ConnectionUse.objects.filter(holder=holder).delete()


def environments(of: Collection[UUID]) -> dict[UUID, dict[str, str]]:
    """Return by holder the secret environment of its connections, in clear. One query."""
    found: dict[UUID, dict[str, str]] = {}
    for one in ConnectionUse.objects.filter(holder__in=of).select_related("connection"):
        values = found.setdefault(one.holder, {})
        found[one.holder] = dict(_variables(one.connection, is_first=not values)) | values
    return found


def _variables(row: Connection, *, is_first: bool) -> Iterator[tuple[str, str]]:
    """Yield names and values: those of boto3, the AWS tools and OpenShift AI for the first, and names of its own."""
    keys = _opened(row)
    own = f"CONNECTION_{row.name.upper().replace('-', '_')}"
    yield f"{own}_ENDPOINT", row.endpoint
    yield f"{own}_BUCKET", row.bucket
    yield f"{own}_ACCESS_KEY", keys["access_key"]
    yield f"{own}_SECRET_KEY", keys["secret_key"]
    if is_first:
        yield "AWS_ACCESS_KEY_ID", keys["access_key"]
        yield "AWS_SECRET_ACCESS_KEY", keys["secret_key"]
        yield "AWS_ENDPOINT_URL", row.endpoint
        yield "AWS_S3_ENDPOINT", row.endpoint
        yield "AWS_S3_BUCKET", row.bucket


# --- checks


def _check(values: Mapping[str, str]) -> None:
    faults: dict[str, list[str]] = {}
    if not NAME.fullmatch(values["name"]):
        faults["name"] = [
            _("Use small letters, digits and hyphens, at most 40; a letter or digit at both ends.")
        ]
    if not _is_address(values["endpoint"]):
        faults["endpoint"] = [_("Give an address like https://s3.example.org, without a path or a password.")]
    if not BUCKET.fullmatch(values["bucket"]):
        faults["bucket"] = [_("A bucket has 3 to 63 letters, digits, dots, hyphens and underscores.")]
    for name in KEYS:
        if not KEY.fullmatch(values[name]):
            faults[name] = [_("Use 1 to 512 visible characters without spaces.")]
    if faults:
        hint = _("Correct the fields that are named.")
        raise Invalid("invalid", _("This connection cannot be saved."), hint, fields=faults)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return False
    is_plain = len(text) <= 253 and text.isascii() and text.isprintable() and " " not in text
    is_bare = parts.path in ("", "/") and not (
        parts.query or parts.fragment or parts.username or parts.password
    )
    return is_plain and is_bare and parts.scheme in ("http", "https") and bool(host)


@contextmanager
def _unique(name: str) -> Iterator[None]:
    """Refuse a second connection of the name."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if "one_connection_of_a_name" not in str(error):
            raise
        text = _("You already have a connection “%(name)s” in this tenant.") % {"name": name}
        fields = {"name": [_("Already taken.")]}
        raise Conflict(
            "name_taken", text, _("Change that one, or choose another name."), fields=fields
        ) from None


def _sealed(values: Mapping[str, str]) -> str:
    return encrypt(json.dumps({name: values[name] for name in KEYS}))


def _opened(row: Connection) -> dict[str, str]:
    keys: dict[str, str] = json.loads(decrypt(row.keys))
    return keys


def _record(actor: Actor, row: Connection, verb: str) -> None:
    data: dict[str, Any] = {"name": row.name, "endpoint": row.endpoint, "bucket": row.bucket}
    audit.record(actor, f"connection.{verb}", target=row, tenant=row.tenant, data=data)
