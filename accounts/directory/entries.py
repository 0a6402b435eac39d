"""Entries of the directory, and what they say of a person. Pure: values of attributes in, claims out.

The claims have the names of OpenID Connect, so that `sign_on.admission` treats people of both in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from ldap3.utils.conv import escape_bytes, escape_filter_chars

from accounts.directory.configuration import Directory

# Active Directory's unique id comes as 16 bytes; OpenLDAP's and FreeIPA's are text.
BINARY_IDS = ("objectguid", "guid")
ACCOUNT_DISABLED = (
    0x2  # of Active Directory's userAccountControl (Microsoft, “UserAccountControl property flags”)
)
NEVER_EXPIRES = (0, 0x7FFF_FFFF_FFFF_FFFF)
FILE_TIME_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
LOCKED_FOR_GOOD = (
    "000001010000Z"  # of OpenLDAP's password policy (slapo-ppolicy); other values are times of lockouts
)
SIGNS_OF_END = (
    "userAccountControl",
    "accountExpires",
    "nsAccountLock",
    "pwdAccountLockedTime",
    "loginDisabled",
)


@dataclass(frozen=True)
class Entry:
    """An entry as it came: attributes by their name in small letters."""

    dn: str
    values: Mapping[str, tuple[bytes, ...]]

    def texts(self, attribute: str) -> list[str]:
        """Return the values that are text."""
        found = []
        for value in self.values.get(attribute.lower(), ()):
            try:
                found.append(value.decode())
            except UnicodeDecodeError:
                continue
        return found

    def text(self, attribute: str) -> str:
        return next(iter(self.texts(attribute)), "")


def attributes(directory: Directory) -> list[str]:
    """Return the attributes to ask for: no others are sent."""
    wanted = [directory.name_attribute, directory.id_attribute, directory.email_attribute]
    wanted += ["givenName", "sn", "preferredLanguage", *SIGNS_OF_END]
    return wanted if directory.group_filter or not directory.grants else [*wanted, "memberOf"]


def subject(entry: Entry, directory: Directory) -> str:
    """Return the id that stays when the person is renamed; empty if the entry has none that can be read."""
    if directory.id_attribute.lower() not in BINARY_IDS:
        return entry.text(directory.id_attribute)
    raw = next(iter(entry.values.get(directory.id_attribute.lower(), ())), b"")
    return str(UUID(bytes_le=raw)) if len(raw) == 16 else ""


def by_name(directory: Directory, name: str) -> str:
    """Return the filter that finds a person by the name that they type."""
    return f"(&{directory.people_filter}({directory.name_attribute}={escape_filter_chars(name)}))"


def by_subject(directory: Directory, known: str) -> str:
    """Return the filter that finds a person by the id of their account."""
    value = escape_filter_chars(known)
    if directory.id_attribute.lower() in BINARY_IDS:
        with suppress(
            ValueError
        ):  # known by another attribute, before a change of the settings: it finds nobody
            value = escape_bytes(UUID(known).bytes_le)
    return f"(&{directory.people_filter}({directory.id_attribute}={value}))"


def groups_filter(directory: Directory, entry: Entry) -> str:
    """Return the filter that finds the person's groups."""
    name = entry.text(directory.name_attribute)
    values = {"{dn}": escape_filter_chars(entry.dn), "{name}": escape_filter_chars(name)}
    # In one pass: a DN may hold the text {name}.
    return re.sub(r"\{dn\}|\{name\}", lambda found: values[found[0]], directory.group_filter)


def named_groups_filter(directory: Directory) -> str:
    """Return the filter that finds the groups that the settings name."""
    names = sorted({grant.group for grant in directory.grants})
    return (
        f"(|{''.join(f'({directory.group_name_attribute}={escape_filter_chars(name)})' for name in names)})"
    )


def has_name(entry: Entry, directory: Directory, name: str) -> bool:
    """Return True if the typed name is the entry's, but for capitals. Directories also find people by names that only
    look like theirs, each of which would give whoever guesses another five attempts."""
    return name.casefold() in {known.casefold() for known in entry.texts(directory.name_attribute)}


def is_ended(entry: Entry, now: datetime) -> bool:
    """Return True if the directory says that the person may not sign in any more."""
    control = entry.text("userAccountControl")
    if control.isdigit() and int(control) & ACCOUNT_DISABLED:
        return True
    expires = entry.text("accountExpires")
    if expires.isdigit() and int(expires) not in NEVER_EXPIRES and _file_time(int(expires)) <= now:
        return True
    is_locked = any(entry.text(sign).upper() == "TRUE" for sign in ("nsAccountLock", "loginDisabled"))
    return is_locked or entry.text("pwdAccountLockedTime") == LOCKED_FOR_GOOD


def _file_time(value: int) -> datetime:
    """Return the moment of Windows' count of 100 ns since 1601; the latest one that there is for greater values."""
    try:
        return FILE_TIME_EPOCH + timedelta(microseconds=value // 10)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def member_of(entry: Entry, base: str) -> frozenset[str]:
    """Return the short names of the groups in memberOf that are below `base`."""
    below = _parts(base)
    parted = (_parts(dn) for dn in entry.texts("memberOf"))
    return frozenset(
        parts[0][1]
        for parts in parted
        if len(parts) > len(below) and _folded(parts[-len(below) :]) == _folded(below)
    )


def claims(entry: Entry, directory: Directory, groups: Iterable[str]) -> dict[str, Any]:
    """Return what the directory says of the person. Its admins answer for the addresses, so these count as verified."""
    return {
        "sub": subject(entry, directory),
        "preferred_username": entry.text(directory.name_attribute),
        "given_name": entry.text("givenName"),
        "family_name": entry.text("sn"),
        "email": entry.text(directory.email_attribute),
        "email_verified": True,
        "locale": entry.text("preferredLanguage"),
        directory.groups_claim: sorted(groups),
    }


def _parts(dn: str) -> list[tuple[str, str]]:
    """Return (attribute, value) of a name's parts (RFC 4514), from the entry upwards; empty if it is no name."""
    pieces = [piece.partition("=") for piece in re.findall(r"(?:\\.|[^\\,+])+", dn)]
    if not all(equals for _attribute, equals, _value in pieces):
        return []
    # Spaces around a part do not count, unless they are escaped.
    return [
        (key.strip(), _unescaped(re.sub(r"(?<!\\)\s+$", "", value.lstrip())))
        for key, _equals, value in pieces
    ]


def _folded(parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(attribute.casefold(), value.casefold()) for attribute, value in parts]


def _unescaped(value: str) -> str:
    r"""Return a value without the escapes of RFC 4514: `\2C` and `\,` are a comma."""

    def raw(found: re.Match[str]) -> bytes:
        text = found[0]
        if len(text) == 3:
            return bytes.fromhex(text[1:])
        return text[1:].encode() if text.startswith("\\") else text.encode()

    pieces = re.finditer(r"\\[0-9A-Fa-f]{2}|\\.|.", value, re.DOTALL)
    return b"".join(map(raw, pieces)).decode(errors="replace")
