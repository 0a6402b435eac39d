"""Sessions are stored under a digest of their key: who reads the database or a backup cannot use one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client

from accounts.credentials import sign_in
from accounts.credentials.sessions import SessionStore, stored_as
from tests.accounts.people import People
from tests.shared.clients import browser

pytestmark = pytest.mark.django_db


def key_of(client: Client) -> str:
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def every_row() -> str:
    """Return all that a dump of the database holds, as text."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        text = []
        for table in tables:
            cursor.execute(f'SELECT * FROM "{table}"')
            text.append(str(cursor.fetchall()))
    return "".join(text)


def with_key(key: str) -> Client:
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = key
    return client


def test_no_row_of_any_table_holds_the_key_and_none_signs_anybody_in(people: People) -> None:
    key = key_of(browser(people.alice))
    assert with_key(key).get("/profile/").status_code == 200
    rows = every_row()
    assert stored_as(key) in rows
    assert key not in rows
    for word in set(re.findall(r"[0-9a-z]{32,}", rows)):
        assert with_key(word).get("/profile/").status_code == 302


def test_the_row_names_the_person_of_its_session_and_the_key_does_not(people: People) -> None:
    key = key_of(browser(people.alice))
    assert sign_in.person_of(stored_as(key)) == people.alice.user
    assert sign_in.person_of(key) is None
    assert sign_in.person_of("") is None


def test_signing_out_and_a_new_key_leave_no_row_behind(people: People) -> None:
    client = browser(people.alice)
    first = key_of(client)
    client.force_login(people.alice.user)  # a new sign-in in the same browser
    client.post("/sign-out/")
    assert not Session.objects.filter(pk=stored_as(first)).exists()
    assert with_key(first).get("/profile/").status_code == 302


@pytest.mark.parametrize("cookie", ["", "x", "\0" * 32, "é" * 32, "a" * 5000])
def test_any_cookie_that_is_no_key_opens_nothing(cookie: str) -> None:
    assert SessionStore(cookie).load() == {}


def test_a_session_lives_and_ends_as_djangos_own() -> None:
    store = SessionStore()
    store["a"] = 1
    store.save()
    key = store.session_key
    assert key is not None
    assert SessionStore().exists(key)
    assert not SessionStore().exists(stored_as(key))
    again = SessionStore(key)
    again["a"] = 2
    again.save()
    assert SessionStore(key).load() == {"a": 2}
    again.cycle_key()
    assert SessionStore(key).load() == {}
    assert SessionStore(again.session_key).load() == {"a": 2}
    SessionStore().delete(again.session_key)
    assert not Session.objects.exists()
    SessionStore().delete(again.session_key)
    with pytest.raises(UpdateError):
        again.save()


@pytest.mark.django_db(transaction=True)
def test_a_session_lives_and_ends_in_async_code() -> None:
    async def life() -> list[Any]:
        store = SessionStore()
        await store.aset("a", 1)
        await store.asave()
        key = store.session_key
        assert key is not None
        rows = [row.pk async for row in Session.objects.all()]
        seen = [rows == [stored_as(key)], await SessionStore().aexists(key), await SessionStore(key).aload()]
        seen.append(await SessionStore(stored_as(key)).aload())
        await store.acycle_key()
        seen += [await SessionStore(key).aload(), await SessionStore(store.session_key).aload()]
        await SessionStore().adelete(store.session_key)
        return [*seen, await Session.objects.acount()]

    assert async_to_sync(life)() == [True, True, {"a": 1}, {}, {}, {"a": 1}, 0]
