"""Tests of messages without an explanation: shown raw, counted per kind, and dismissed by an admin."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import AuditEntry
from clusters.explain import UNKNOWN, diagnose, sentence
from clusters.models import UnknownCause
from clusters.unknown_causes import count, dismiss
from portal import attention
from tests.admin_forms import text_of
from tests.cast import Cast, make_cast
from tests.shared.clients import browser

pytestmark = pytest.mark.django_db

LIST = "/admin/clusters/unknowncause/"


@pytest.fixture
def cast() -> Cast:
    return make_cast()


@pytest.fixture
def admin(cast: Cast) -> Client:
    return browser(cast.admin)


def told() -> list[str]:
    return [item.text for item in attention.overview()["items"] if LIST in item.address]


def test_it_is_shown_raw() -> None:
    diagnosis = diagnose("container", "the flux capacitor is out of plutonium")
    assert (diagnosis.code, diagnosis.known) == (UNKNOWN, False)
    assert "flux capacitor" in sentence(diagnosis.code, diagnosis.data)


def test_it_is_counted_once_per_kind_with_the_cluster_that_said_it_last(cast: Cast) -> None:
    count("container", 'the flux capacitor "a" of node 17 is out of plutonium')
    count("container", 'the flux capacitor "b" of node 4 is out of plutonium', cast.cluster.pk)
    count("container", 'the flux capacitor "c" of node 5 is out of plutonium')
    row = UnknownCause.objects.get()
    assert (row.count, row.source, row.cluster) == (3, "container", cast.cluster)


def test_the_same_words_elsewhere_are_another_kind() -> None:
    count("container", "flux")
    count("volume", "flux")
    assert UnknownCause.objects.count() == 2


def test_what_the_database_cannot_keep_is_left_out() -> None:
    count("container", diagnose("container", "flux \0 \ud800 " + "x" * 10_000).data["raw"])
    assert len(UnknownCause.objects.get().text) <= 2000


def test_admins_read_it_whole_and_dismiss_it_on_record(admin: Client) -> None:
    count("volume", "the flux capacitor hums " + "again and " * 40 + "again")
    row = UnknownCause.objects.get()
    assert told() == ["1 message of the clusters is not explained."]
    assert "hums" in text_of(admin.get(LIST))
    assert row.text in text_of(admin.get(f"{LIST}{row.pk}/change/"))
    admin.post(LIST, {"action": "dismiss", "_selected_action": row.pk})
    row.refresh_from_db()
    assert row.dismissed_at is not None
    entry = AuditEntry.objects.get(action="unknowncause.dismiss")
    assert (entry.actor_name, entry.data["source"]) == ("admin", "volume")
    assert told() == []


def test_one_that_is_dismissed_is_counted_on_and_dismissed_once(cast: Cast) -> None:
    count("volume", "flux")
    row = UnknownCause.objects.get()
    assert dismiss(cast.admin, row)
    assert not dismiss(cast.admin, row)
    count("volume", "flux")
    row.refresh_from_db()
    assert (row.count, AuditEntry.objects.filter(action="unknowncause.dismiss").count()) == (2, 1)
    assert told() == []
