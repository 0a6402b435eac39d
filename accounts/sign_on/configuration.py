"""The sign-on provider and the meaning of groups: read from the environment, checked at the start.

The settings import this module, so it must not import Django's models.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

ROLES = ("owner", "member", "viewer")  # the strongest first
ADMIN = "admin"
PREFIX = "BERTH_OIDC_"


@dataclass(frozen=True)
class Grant:
    """The right that a group gives: a role in a tenant, or (without a tenant) administration."""

    group: str
    role: str
    tenant: str = ""


class Source(Protocol):
    """A place that people come from, with accounts of theirs that are known by `issuer` and a subject."""

    @property
    def issuer(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def groups_claim(self) -> str: ...
    @property
    def grants(self) -> tuple[Grant, ...]: ...
    @property
    def link_by_email(self) -> bool: ...


@dataclass(frozen=True)
class Provider:
    """An OpenID Connect provider, as an admin describes it."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str = "single sign-on"
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    groups_claim: str = "groups"
    grants: tuple[Grant, ...] = ()
    link_by_email: bool = False


def provider_from(environment: Mapping[str, str]) -> Provider | None:
    """Return the provider; None if no issuer is set. Raise ImproperlyConfigured with what to change."""

    def value(name: str, default: str = "") -> str:
        return environment.get(PREFIX + name, default).strip()

    issuer = value("ISSUER").rstrip("/")
    if not issuer:
        return None
    require_safe(issuer, f"{PREFIX}ISSUER")
    missing = [PREFIX + name for name in ("CLIENT_ID", "CLIENT_SECRET") if not value(name)]
    if missing:
        raise ImproperlyConfigured(f"{PREFIX}ISSUER is set; set {' and '.join(missing)}, too.")
    return Provider(
        issuer=issuer,
        client_id=value("CLIENT_ID"),
        client_secret=value("CLIENT_SECRET"),
        name=value("NAME") or Provider.name,
        scopes=tuple(dict.fromkeys(("openid", *value("SCOPES", "profile email").replace(",", " ").split()))),
        groups_claim=value("GROUPS_CLAIM") or Provider.groups_claim,
        grants=tuple(read_grants(value("GROUPS"), f"{PREFIX}GROUPS")),
        link_by_email=is_true(value("LINK_BY_EMAIL")),
    )


def is_true(text: str) -> bool:
    return text.lower() in ("1", "true", "yes", "on")


def require_safe(url: str, name: str) -> None:
    """Require https, or this machine itself, because passwords and tokens go there."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and is_loopback(parts.hostname or ""):
        return
    raise ImproperlyConfigured(f"{name} must start with https:// (plain http only on this machine itself).")


def read_grants(text: str, name: str) -> Iterable[Grant]:
    """Yield the grants of `vision-team=vision:member, berth-admins=admin`; a group may occur more than once.

    `name`: the setting that holds the text, for the message of ImproperlyConfigured."""
    for entry in filter(None, (part.strip() for part in re.split(r"[,\n]", text))):
        group, equals, meaning = entry.rpartition("=")
        tenant, colon, role = meaning.strip().rpartition(":")
        is_admin = meaning.strip() == ADMIN
        if not (equals and group.strip()) or not (is_admin or (colon and tenant and role in ROLES)):
            raise ImproperlyConfigured(
                f"{name}: “{entry}” is not understood. Write group=tenant:role with a role of"
                f" {', '.join(ROLES)}, or group=admin; separate several by commas."
            )
        yield Grant(group.strip(), ADMIN if is_admin else role, tenant.strip())


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
