"""Settings of the LDAP directory, and what its entries say: without a directory."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime
from threading import Event, Semaphore
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured

from accounts.directory import asking, entries
from accounts.directory.configuration import Directory, Server, directory_from
from accounts.directory.entries import Entry
from accounts.directory.plan import Plan, is_due, plan
from accounts.models import User
from accounts.sign_on.configuration import Grant

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
LEAST = {"BERTH_LDAP_URL": "ldaps://a.example.org", "BERTH_LDAP_PEOPLE_BASE": "ou=people,dc=example,dc=org"}


def read(**more: str) -> Directory:
    found = directory_from(LEAST | {f"BERTH_LDAP_{name}": value for name, value in more.items()})
    assert found is not None
    return found


def entry(**values: bytes) -> Entry:
    return Entry("uid=ada,ou=people", {name.lower(): (value,) for name, value in values.items()})


def test_what_is_set_is_read_and_the_password_is_not_shown() -> None:
    assert directory_from({}) is None
    groups = {"GROUPS": "a=vision:owner, root=admin", "GROUP_BASE": "ou=groups"}
    found = read(
        URL="ldaps://a.example.org, ldaps://[2001:db8::1]:1636", BIND_DN="cn=b", BIND_PASSWORD="pw", **groups
    )
    assert found.servers == (Server("a.example.org", 636, True), Server("2001:db8::1", 1636, True))
    assert found.grants == (Grant("a", "owner", "vision"), Grant("root", "admin"))
    assert "pw" not in repr(found)
    assert read(URL="ldap://a.example.org", START_TLS="1").servers[0].port == 389
    assert read(URL="ldap://127.0.0.1:3890").servers[0].is_tls is False


@pytest.mark.parametrize(
    "wrong",
    [
        {"URL": "ldap://a.example.org"},
        {"URL": "https://a.example.org"},
        {"URL": "ldaps://a.example.org/dc=example"},
        {"URL": "ldaps://user:password@a.example.org"},
        {"URL": "ldaps://a.example.org:x"},
        {"START_TLS": "1"},
        {"PEOPLE_BASE": ""},
        {"BIND_DN": "cn=berth"},
        {"GROUPS": "a=vision:member"},
        {"GROUPS": "a=vision:king", "GROUP_BASE": "ou=groups"},
        {"GROUP_FILTER": "(objectClass=group)"},
        {"GROUP_FILTER": "member={dn}"},
        {"PEOPLE_FILTER": "(objectClass=person"},
        {"NAME_ATTRIBUTE": "uid)(x"},
        {"CA_FILE": "/nonexistent/ca.pem"},
        {"CA": "no certificate"},
    ],
)
def test_a_wrong_setting_stops_the_start_and_is_named(wrong: dict[str, str]) -> None:
    with pytest.raises(ImproperlyConfigured, match="BERTH_LDAP_"):
        read(**wrong)


def test_ids_are_text_or_the_bytes_of_active_directory() -> None:
    known = UUID("2f2ba0d4-3f0a-4d8e-9a52-4a1c6f2e9b10")
    there = read(ID_ATTRIBUTE="objectGUID", NAME_ATTRIBUTE="sAMAccountName")
    assert entries.subject(entry(objectGUID=known.bytes_le), there) == str(known)
    assert entries.by_subject(there, str(known)).count("\\") == 16
    assert entries.subject(entry(objectGUID=b"short"), there) == ""
    assert entries.subject(entry(entryUUID=str(known).encode()), read()) == str(known)
    assert entries.by_name(read(), "a*)(uid=*") == "(&(objectClass=person)(uid=a\\2a\\29\\28uid=\\2a))"


def test_groups_of_a_person_are_those_below_the_base() -> None:
    there = [
        b"cn=vision\\2Cteam,ou=Groups,dc=example,dc=org",
        b"CN=a\\2bb,OU=x, OU=groups , DC=example,DC=org",
        b"CN=Doe\\, J\\C3\\B6rg\\ ,OU=groups,DC=example,DC=org",
        b"cn=trick\\,ou=groups\\,dc=example\\,dc=org,ou=elsewhere",
        b"cn=admins,ou=elsewhere,dc=example,dc=org",
        b"cn=admins,ou=notgroups,dc=example,dc=org",
        b"ou=groups,dc=example,dc=org",
        b"no name",
        b"\xff",
    ]
    found = entries.member_of(Entry("x", {"memberof": tuple(there)}), "ou=groups,dc=example,dc=org")
    assert found == {"vision,team", "a+b", "Doe, Jörg "}


def test_a_filter_for_groups_is_filled_in_once() -> None:
    there = read(GROUP_FILTER="(|(member={dn})(memberUid={name}))", GROUP_BASE="ou=groups")
    who = Entry("uid={name},ou=people", {"uid": (b"{dn}*",)})
    assert entries.groups_filter(there, who) == "(|(member=uid={name},ou=people)(memberUid={dn}\\2a))"


@pytest.mark.parametrize(
    ("values", "ended"),
    [
        ({}, False),
        ({"userAccountControl": b"512"}, False),
        ({"userAccountControl": b"514"}, True),
        ({"accountExpires": b"0"}, False),
        ({"accountExpires": b"9223372036854775807"}, False),
        ({"accountExpires": b"9223372036854775806"}, False),
        ({"accountExpires": b"132223104000000000"}, True),  # 2020-01-01
        ({"nsAccountLock": b"TRUE"}, True),
        ({"nsAccountLock": b"false"}, False),
        ({"pwdAccountLockedTime": b"000001010000Z"}, True),
        ({"pwdAccountLockedTime": b"20261128115900Z"}, False),
    ],
)
def test_a_directory_says_in_its_own_way_who_may_not_sign_in(values: dict[str, Any], ended: bool) -> None:
    assert entries.is_ended(entry(**values), NOW) is ended


def test_a_directory_that_hangs_or_failed_a_moment_ago_holds_up_no_more_sign_ins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hanging, failing = Event(), Event()
    begun = Semaphore(0)

    def opened(directory: Directory) -> None:
        if failing.is_set():
            asking._failed_at[directory.servers[0]] = time.monotonic()
        else:
            begun.release()
            hanging.wait(60)
        raise OSError

    monkeypatch.setattr(asking, "_failed_at", {})
    monkeypatch.setattr(asking, "_opened", opened)

    def ask() -> str:
        with pytest.raises(asking.Away) as away:
            asking.proven(read(), "(uid=ada)", "ada", "secret", NOW)
        return str(away.value)

    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(ask) for _number in range(3)]
        assert all(begun.acquire(timeout=60) for _number in asked)
        assert ask() == "3 sign-ins are waiting for it"
        failing.set()
        hanging.set()
        assert {one.result() for one in asked} == {"it broke off (OSError)"}
    assert ask() == "it broke off (OSError)"  # the turns are free again
    assert ask() == "all servers failed a moment ago"


def test_an_entry_whose_id_cannot_be_read_makes_the_answer_incomplete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = [entry(entryUUID=b"1"), entry(uid=b"bea")]
    monkeypatch.setattr(asking, "connected", lambda _directory: nullcontext())
    monkeypatch.setattr(asking, "everybody", lambda *_asked: iter(there))
    with pytest.raises(asking.Away, match="no entryUUID that can be read"):
        asking.read(read(), {"1", "2"}, None, NOW)
    del there[1]
    assert set(asking.read(read(), {"1", "2"}, None, NOW).present) == {"1"}


def moment(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "tried", "settled", "due"),
    [
        (moment(28, 2, 5), None, None, True),
        (moment(28, 2, 5), moment(27, 2, 5), moment(27, 2, 5), True),
        (moment(28, 1, 55), moment(27, 2, 5), moment(27, 2, 5), False),
        (moment(28, 14), moment(28, 2, 5), moment(28, 2, 5), False),
        (moment(28, 14), moment(26, 2, 5), moment(26, 2, 5), True),  # the worker was away at night
        (moment(28, 2, 15), moment(28, 2, 5), None, False),  # failed
        (moment(28, 3, 6), moment(28, 2, 5), None, True),
    ],
)
def test_a_sync_is_due_once_a_night_and_an_hour_after_it_failed(
    now: datetime, tried: datetime | None, settled: datetime | None, due: bool
) -> None:
    assert is_due(now, tried, settled) is due


@pytest.mark.parametrize(
    ("leaving", "losing", "active", "too_much"),
    [
        (5, 0, 6, False),
        (5, 0, 5, True),
        (2, 0, 2, True),
        (1, 0, 1, False),
        (6, 0, 30, False),
        (6, 0, 29, True),
        (3, 4, 20, True),
        (200, 0, 1000, False),
        (201, 0, 1000, True),
    ],
)
def test_more_than_five_people_and_a_fifth_or_all_are_too_many_at_once(
    leaving: int, losing: int, active: int, too_much: bool
) -> None:
    people = [User() for _number in range(leaving)]
    assert Plan(people, [], [], losing, active).is_too_much is too_much


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("groups", [None, [], ["root"]])
def test_an_admin_stays_or_an_admin_looks_first(groups: list[str] | None, elsewhere: bool) -> None:
    ada, bea = (
        User(username=name, is_staff=name == "ada", staff_by_group=name == "ada") for name in ("ada", "bea")
    )
    for user in (ada, bea):
        user._prefetched_objects_cache = {"memberships": User.objects.none()}  # type: ignore[attr-defined]
    present: dict[str, Any] = {"2": {"groups": []}} | (
        {} if groups is None else {"1": {"given_name": "Ada", "groups": groups}}
    )
    admins = {ada.pk} | ({uuid4()} if elsewhere else set())
    found = plan({"1": ada, "2": bea}, present, read(GROUPS="root=admin", GROUP_BASE="ou=groups"), [], admins)
    assert found.is_too_much is (groups != ["root"] and not elsewhere)
