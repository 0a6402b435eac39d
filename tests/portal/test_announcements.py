"""Tests of announcements on all pages, and of maintenance: nothing new starts, requests wait, and it ends again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from accounts.announcements import changing, showing
from accounts.announcements.models import Announcement
from accounts.errors import Conflict, NotAllowed
from quotas import admission
from quotas.models import Claim
from tests.cast import Cast, make_cast
from tests.shared.clients import browser
from workloads.sizes.sizing import SizeAsked
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


@pytest.fixture
def cast() -> Cast:
    return make_cast()


def spec(name: str) -> LaunchSpec:
    return LaunchSpec(tenant="demo", name=name, image="jupyter", size=SizeAsked(flavor="a100-1"))


def test_it_is_on_every_page_while_it_lasts(cast: Cast) -> None:
    now = timezone.now()
    with pytest.raises(NotAllowed):
        changing.announce(cast.alice, text="Mine")
    changing.announce(cast.admin, text="Bygone", shown_from=now - 2 * HOUR, shown_until=now - HOUR)
    changing.announce(cast.admin, text="To come", shown_from=now + HOUR)
    said = changing.announce(cast.admin, text="New GPUs", level="warn")
    pages = [(Client(), "/sign-in/"), (browser(cast.bob), "/"), (browser(cast.admin), "/admin/")]
    for client, path in pages:
        page = client.get(path).content.decode()
        assert "New GPUs" in page and "Bygone" not in page and "To come" not in page, path
    assert changing.end(cast.admin, said.pk) and not changing.end(cast.admin, said.pk)
    assert not showing.shown()


def test_in_maintenance_nothing_new_starts_and_afterwards_what_waited_does(cast: Cast) -> None:
    running = launch(cast.bob, spec("before"))
    admission.admit(cast.pool.pk)
    waiting = launch(cast.bob, spec("waiting"))
    now = timezone.now()
    told = changing.announce(
        cast.admin, text="New switch", shown_until=now + HOUR, no_launches_from=now + HOUR / 2
    )
    launch(cast.bob, spec("told-beforehand"))
    Announcement.objects.update(shown_from=now - HOUR, no_launches_from=now)

    with pytest.raises(Conflict) as refused:
        launch(cast.bob, spec("after"))
    assert refused.value.code == "maintenance"
    of_admin = launch(cast.admin, spec("of-admin"))
    admission.admit(cast.pool.pk)
    states = dict(Claim.objects.values_list("holder_id", "state"))
    assert states[running.pk] == states[of_admin.pk] == Claim.State.ADMITTED
    assert states[waiting.pk] == Claim.State.WAITING
    assert Claim.objects.get(holder_id=waiting.pk).reason_code == "maintenance"

    changing.end(cast.admin, told.pk)
    admission.admit(cast.pool.pk)
    assert Claim.objects.get(holder_id=waiting.pk).state == Claim.State.ADMITTED
    assert Workspace.objects.count() == 4


def test_times_must_be_in_order(cast: Cast) -> None:
    now = timezone.now()
    for times in (
        {"shown_until": now - HOUR},
        {"no_launches_from": now - HOUR},
        {"shown_until": now + HOUR, "no_launches_from": now + HOUR},
    ):
        with pytest.raises(ValidationError):
            Announcement(text="x", shown_from=now, **times).full_clean()
