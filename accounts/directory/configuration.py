"""The LDAP directory, read from the environment and checked at the start.

The settings import this module, so it must not import Django's models.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from accounts.sign_on.configuration import Grant, is_loopback, is_true, read_grants

PREFIX = "BERTH_LDAP_"
PORTS = {"ldap": 389, "ldaps": 636}


@dataclass(frozen=True)
class Server:
    host: str
    port: int
    is_tls: bool

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Directory:
    """An LDAP directory, as an admin describes it. `issuer`, `groups_claim` and `grants` are as an OIDC provider has
    them (`sign_on.configuration.Source`): its people are admitted by the same rules."""

    servers: tuple[Server, ...]
    people_base: str
    name: str = "LDAP"
    start_tls: bool = False
    ca_file: str = ""
    ca: str = ""  # the same as PEM text, for a setting of the chart
    bind_dn: str = ""
    bind_password: str = field(default="", repr=False)
    people_filter: str = "(objectClass=person)"
    name_attribute: str = "uid"
    id_attribute: str = "entryUUID"
    email_attribute: str = "mail"
    group_base: str = ""
    group_filter: str = ""  # with {dn} and {name} of the person; empty: the person's memberOf
    group_name_attribute: str = "cn"
    grants: tuple[Grant, ...] = ()
    link_by_email: bool = False
    # One for all servers: these are copies of each other, and a person keeps the account when a server is replaced.
    issuer: str = "ldap"
    groups_claim: str = "groups"

    def __str__(self) -> str:
        return self.name


def directory_from(environment: Mapping[str, str]) -> Directory | None:
    """Return the directory; None if no URL is set. Raise ImproperlyConfigured with what to change."""

    def value(name: str, default: str = "") -> str:
        return environment.get(PREFIX + name, "").strip() or default

    if not value("URL"):
        return None
    start_tls = is_true(value("START_TLS"))
    found = Directory(
        servers=tuple(_server(url, start_tls) for url in value("URL").replace(",", " ").split()),
        people_base=value("PEOPLE_BASE"),
        name=value("NAME", Directory.name),
        start_tls=start_tls,
        ca_file=value("CA_FILE"),
        ca=value("CA"),
        bind_dn=value("BIND_DN"),
        bind_password=value("BIND_PASSWORD"),
        people_filter=_filter(value("PEOPLE_FILTER", Directory.people_filter), "PEOPLE_FILTER"),
        name_attribute=_attribute(value("NAME_ATTRIBUTE", Directory.name_attribute), "NAME_ATTRIBUTE"),
        id_attribute=_attribute(value("ID_ATTRIBUTE", Directory.id_attribute), "ID_ATTRIBUTE"),
        email_attribute=_attribute(value("EMAIL_ATTRIBUTE", Directory.email_attribute), "EMAIL_ATTRIBUTE"),
        group_base=value("GROUP_BASE"),
        group_filter=_filter(value("GROUP_FILTER"), "GROUP_FILTER"),
        group_name_attribute=_attribute(
            value("GROUP_NAME_ATTRIBUTE", Directory.group_name_attribute), "GROUP_NAME_ATTRIBUTE"
        ),
        grants=tuple(read_grants(value("GROUPS"), f"{PREFIX}GROUPS")),
        link_by_email=is_true(value("LINK_BY_EMAIL")),
    )
    if why := _missing(found):
        raise ImproperlyConfigured(why)
    return found


def _missing(found: Directory) -> str:
    """Return what to change in settings that do not fit together; empty if they do."""
    if not found.people_base:
        return f"{PREFIX}URL is set; set {PREFIX}PEOPLE_BASE, too: the entry below which people are."
    if found.bind_dn and not found.bind_password:
        return (
            f"{PREFIX}BIND_DN is set; set {PREFIX}BIND_PASSWORD, too: without it the bind would be anonymous."
        )
    if found.grants and not found.group_base:
        # Groups are known by a short name, which somebody else may give to a group elsewhere in the directory.
        return f"{PREFIX}GROUPS is set; set {PREFIX}GROUP_BASE, too: only groups below it count."
    if found.group_filter and not {"{dn}", "{name}"} & set(re.findall(r"\{\w*\}", found.group_filter)):
        return f"{PREFIX}GROUP_FILTER must name the person by {{dn}} or {{name}}, as in (member={{dn}})."
    try:
        trusted(found)
    except (OSError, ValueError):  # ssl's errors are OSErrors
        return f"{PREFIX}CA_FILE must be a readable file, and {PREFIX}CA text, with certificates as PEM."
    return ""


def trusted(directory: Directory) -> ssl.SSLContext:
    """Return what a server's certificate is checked with: the CAs in the settings, or else those of the system."""
    return ssl.create_default_context(cafile=directory.ca_file or None, cadata=directory.ca or None)


def _server(url: str, start_tls: bool) -> Server:
    name = f"{PREFIX}URL"
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS[parts.scheme]
    except (ValueError, KeyError):
        raise ImproperlyConfigured(f"{name}: “{url}” must start with ldaps:// or ldap://.") from None
    if not parts.hostname or parts.path.strip("/") or parts.query or parts.username:
        raise ImproperlyConfigured(
            f"{name}: write ldaps://host or ldaps://host:port, without anything after it."
        )
    if parts.scheme == "ldap" and not start_tls and not is_loopback(parts.hostname):
        raise ImproperlyConfigured(
            f"{name} must start with ldaps://, or set {PREFIX}START_TLS=1, because passwords go there"
            " (plain ldap only on this machine itself)."
        )
    if parts.scheme == "ldaps" and start_tls:
        raise ImproperlyConfigured(
            f"{name}: ldaps:// is encrypted from the start; leave {PREFIX}START_TLS out."
        )
    return Server(parts.hostname, port, parts.scheme == "ldaps")


def _filter(text: str, name: str) -> str:
    """Require parentheses around a filter that is set, and as many open as closed."""
    if text and not (text.startswith("(") and text.endswith(")") and text.count("(") == text.count(")")):
        raise ImproperlyConfigured(
            f"{PREFIX}{name}: write the filter in parentheses, such as (objectClass=person)."
        )
    return text


def _attribute(text: str, name: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9.-]*", text):
        raise ImproperlyConfigured(f"{PREFIX}{name}: “{text}” is no name of an attribute.")
    return text
