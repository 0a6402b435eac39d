"""Questions to the LDAP directory: the only code that speaks to it. It finds people, and tries their passwords there.

No referral is followed, and no password, filter or entry gets into the log.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from secrets import token_hex
from threading import BoundedSemaphore
from typing import Any

import ldap3
from ldap3.core import results
from ldap3.core.exceptions import LDAPException

from accounts.directory import entries
from accounts.directory.configuration import Directory, Server, trusted
from accounts.directory.entries import Entry

log = logging.getLogger(__name__)

CONNECT_SECONDS = 4
ANSWER_SECONDS = 10
# A server that did not answer is asked last for so long, so that each sign-in does not wait for it.
LEFT_OUT_SECONDS = 60
# For so long after all servers failed no sign-in asks them, and so many of a process ask at once: a directory that
# hangs must not take the process's threads from everybody else.
PAUSE_SECONDS = 10
MOST_AT_ONCE = 3
TURN_SECONDS = 2.0  # how long one waits for its turn
# Active Directory sends 1,000 entries at most for one question.
PAGE = 500
PAGES = "1.2.840.113556.1.4.319"  # control of RFC 2696
# The person's bind is wrong, or the directory does not let this person in. Other results are the directory's faults.
NOT_LET_IN = frozenset(
    {
        results.RESULT_INVALID_CREDENTIALS,
        results.RESULT_NO_SUCH_OBJECT,
        results.RESULT_INAPPROPRIATE_AUTHENTICATION,
        results.RESULT_INSUFFICIENT_ACCESS_RIGHTS,
        results.RESULT_CONSTRAINT_VIOLATION,
        results.RESULT_UNWILLING_TO_PERFORM,
        results.RESULT_INVALID_DN_SYNTAX,
        results.RESULT_REFERRAL,
    }
)
_failed_at: dict[Server, float] = {}
_turns = BoundedSemaphore(MOST_AT_ONCE)


class Away(Exception):
    """The directory does not answer, or not in full. The text says why, for the log and for admins."""


@dataclass(frozen=True)
class Reading:
    """Answer of the whole directory about known people: claims by subject, of those that are there and not ended."""

    present: dict[str, dict[str, Any]]
    people: int


class _Tls(ldap3.Tls):  # type: ignore[misc]
    """TLS as Python's own `ssl` checks it: the certificate, and that it is this host's."""

    def __init__(self, directory: Directory) -> None:
        super().__init__(validate=ssl.CERT_REQUIRED)
        self.context = trusted(directory)

    def wrap_socket(self, connection: ldap3.Connection, do_handshake: bool = False) -> None:
        connection.socket = self.context.wrap_socket(
            connection.socket, server_hostname=connection.server.host
        )


def proven(
    directory: Directory, wanted: str, name: str | None, password: str, now: datetime
) -> dict[str, Any] | None:
    """Return the claims of the person that the filter `wanted` finds, if the password is theirs and the directory lets
    them in; else None.

    `name` is what they typed, which must be the entry's. An unknown person costs the same questions as a known one.
    Raise Away.
    """
    if not password:
        return None  # a bind without a password succeeds for everybody (RFC 4513, 5.1.2)
    with _turn(directory), connected(directory) as connection:
        found = _one(connection, directory, wanted)
        if found is not None and not _may_come_in(directory, found, name, now):
            found = None
        dn = found.dn if found else f"cn={token_hex(8)},{directory.people_base}"
        if not _is_password(directory, connection, dn, password) or found is None:
            return None
        return entries.claims(found, directory, _groups(connection, directory, found))


def read(directory: Directory, known: set[str], seconds: float | None, now: datetime) -> Reading:
    """Return what the directory says of the people whose subjects are known. Raise Away if any answer is missing, or if
    it does not come within so many seconds."""
    end = None if seconds is None else time.monotonic() + seconds
    with connected(directory) as connection:
        if directory.grants and not named_groups(connection, directory):
            raise Away("none of the groups in BERTH_LDAP_GROUPS is below BERTH_LDAP_GROUP_BASE")
        people, found = 0, dict[str, Entry]()
        for entry in everybody(connection, directory):
            _require_time(end)
            people += 1
            subject = entries.subject(entry, directory)
            if not subject:
                raise Away(
                    f"an entry has no {directory.id_attribute} that can be read: see BERTH_LDAP_PEOPLE_FILTER and the"
                    " rights of BERTH_LDAP_BIND_DN"
                )
            if subject in found:
                raise Away(f"two entries have the same {directory.id_attribute}")
            if subject in known:
                found[subject] = entry
        if not people:
            raise Away("it shows nobody: see BERTH_LDAP_PEOPLE_BASE and BERTH_LDAP_PEOPLE_FILTER")
        present = {}
        for subject, entry in found.items():
            _require_time(end)
            if not entries.is_ended(entry, now):
                present[subject] = entries.claims(entry, directory, _groups(connection, directory, entry))
    return Reading(present, people)


@contextmanager
def _turn(directory: Directory) -> Iterator[None]:
    """Let a sign-in ask the directory soon, or raise Away: a class may come at once, and no thread waits for long."""
    began = time.monotonic() - PAUSE_SECONDS
    if all(_failed_at.get(server, -1e9) > began for server in directory.servers):
        raise Away("all servers failed a moment ago")
    if not _turns.acquire(timeout=TURN_SECONDS):
        raise Away(f"{MOST_AT_ONCE} sign-ins are waiting for it")
    try:
        yield
    finally:
        _turns.release()


@contextmanager
def connected(directory: Directory) -> Iterator[ldap3.Connection]:
    """Yield a connection that may search. Raise Away, also for what fails inside."""
    try:
        connection = _opened(directory)
        try:
            yield connection
        finally:
            connection.unbind()
    except (LDAPException, OSError) as error:
        raise Away(f"it broke off ({type(error).__name__})") from None


def everybody(connection: ldap3.Connection, directory: Directory) -> Iterator[Entry]:
    """Yield all people, page by page."""
    wanted = entries.attributes(directory)
    yield from search(connection, directory.people_base, directory.people_filter, wanted)


def named_groups(connection: ldap3.Connection, directory: Directory) -> set[str]:
    """Return the names of the groups in the settings that are there."""
    attribute = directory.group_name_attribute
    found = search(connection, directory.group_base, entries.named_groups_filter(directory), [attribute])
    names = {name.casefold() for entry in found for name in entry.texts(attribute)}
    return {grant.group for grant in directory.grants if grant.group.casefold() in names}


def search(connection: ldap3.Connection, base: str, wanted: str, attributes: list[str]) -> Iterator[Entry]:
    """Yield what is found below the base, page by page. Raise Away unless it is all that there is."""
    cookie = None
    while True:
        connection.search(
            base,
            wanted,
            ldap3.SUBTREE,
            ldap3.DEREF_NEVER,
            attributes=attributes,
            paged_size=PAGE,
            paged_cookie=cookie,
        )
        _require(connection, "search")
        yield from _entries(connection)
        told = (connection.result.get("controls") or {}).get(PAGES) or {}
        cookie = told.get("value", {}).get("cookie")
        if not cookie:
            return


def _may_come_in(directory: Directory, entry: Entry, name: str | None, now: datetime) -> bool:
    is_named = name is None or entries.has_name(entry, directory, name)
    return is_named and entries.subject(entry, directory) != "" and not entries.is_ended(entry, now)


def _opened(directory: Directory) -> ldap3.Connection:
    """Return a connection to the first server that answers, bound as Berth."""
    reasons = []
    now = time.monotonic()
    by_health = sorted(directory.servers, key=lambda one: now - _failed_at.get(one, -1e9) < LEFT_OUT_SECONDS)
    for server in by_health:
        try:
            connection = _bound(directory, server, directory.bind_dn, directory.bind_password)
            _require(connection, "bind as BERTH_LDAP_BIND_DN" if directory.bind_dn else "anonymous bind")
        except (LDAPException, OSError, Away) as error:
            _failed_at[server] = time.monotonic()
            reasons.append(f"{server}: {_why(error)}")
        else:
            _failed_at.pop(server, None)
            return connection
    raise Away("; ".join(reasons))


def _why(error: Exception) -> str:
    """Return the reason of a failure. Texts of certificates and sockets name no secret."""
    if isinstance(error, Away):
        return str(error)
    return f"{type(error).__name__}: {str(error)[:160]}"


def _bound(directory: Directory, server: Server, dn: str, password: str | bytes) -> ldap3.Connection:
    """Return a connection after a bind, whose result is in `result`. It is encrypted before anything is sent. ldap3
    changes or refuses some characters of a password that is text (SASLprep), and sends bytes as they are."""
    tls = _Tls(directory) if server.is_tls or directory.start_tls else None
    connection = ldap3.Connection(
        ldap3.Server(
            server.host,
            server.port,
            use_ssl=server.is_tls,
            tls=tls,
            get_info=ldap3.NONE,
            connect_timeout=CONNECT_SECONDS,
        ),
        user=dn or None,
        password=password or None,
        authentication=ldap3.SIMPLE if dn else ldap3.ANONYMOUS,
        auto_referrals=False,
        check_names=False,
        read_only=True,
        receive_timeout=ANSWER_SECONDS,
    )
    connection.open(read_server_info=False)
    try:
        if directory.start_tls:
            connection.start_tls(read_server_info=False)
        connection.bind(read_server_info=False)
    except BaseException:
        connection.strategy.close()
        raise
    return connection


def _is_password(directory: Directory, searching: ldap3.Connection, dn: str, password: str) -> bool:
    """Try the password on a connection of its own, to the same server. Raise Away for the directory's own faults."""
    server = next(
        one for one in directory.servers if str(one) == f"{searching.server.host}:{searching.server.port}"
    )
    connection = _bound(directory, server, dn, password.encode())
    try:
        code = connection.result["result"]
        if code != results.RESULT_SUCCESS and code not in NOT_LET_IN:
            _require(connection, "bind of a person")
        return bool(code == results.RESULT_SUCCESS)
    finally:
        connection.unbind()


def _one(connection: ldap3.Connection, directory: Directory, wanted: str) -> Entry | None:
    """Return the one entry that is found; None if there is none, or if there are several."""
    asked = entries.attributes(directory)
    connection.search(
        directory.people_base, wanted, ldap3.SUBTREE, ldap3.DEREF_NEVER, attributes=asked, size_limit=2
    )
    if connection.result["result"] != results.RESULT_SIZE_LIMIT_EXCEEDED:
        _require(connection, "search")
    found = list(_entries(connection))
    if len(found) > 1:
        log.error(
            "LDAP: several people have one name; see BERTH_LDAP_PEOPLE_BASE and BERTH_LDAP_PEOPLE_FILTER"
        )
    return found[0] if len(found) == 1 else None


def _groups(connection: ldap3.Connection, directory: Directory, entry: Entry) -> frozenset[str]:
    """Return the names of the person's groups; none if no group has a meaning here."""
    if not directory.grants:
        return frozenset()
    if not directory.group_filter:
        found = entries.member_of(entry, directory.group_base)
    else:
        attribute = directory.group_name_attribute
        rows = search(connection, directory.group_base, entries.groups_filter(directory, entry), [attribute])
        found = frozenset(name for row in rows for name in row.texts(attribute))
    # Names of groups are the same whatever their capitals; the settings' way of writing counts.
    folded = {name.casefold() for name in found}
    return frozenset(grant.group for grant in directory.grants if grant.group.casefold() in folded)


def _entries(connection: ldap3.Connection) -> Iterator[Entry]:
    """Yield the entries of an answer. References to other servers are left out."""
    for one in connection.response or ():
        if one["type"] == "searchResEntry":
            raw = {name.lower(): tuple(values) for name, values in one["raw_attributes"].items()}
            yield Entry(one["dn"], raw)


def _require(connection: ldap3.Connection, what: str) -> None:
    if connection.result["result"] != results.RESULT_SUCCESS:
        raise Away(f"{what}: {connection.result['description']}")


def _require_time(end: float | None) -> None:
    if end is not None and time.monotonic() > end:
        raise Away("it takes too long to read: run manage.py sync_directory, which has no limit")
