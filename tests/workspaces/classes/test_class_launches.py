"""Class launches on rows: who gets a workspace, when, and that nothing is made twice."""

from __future__ import annotations

from datetime import timedelta
from time import sleep
from typing import Any

import pytest
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts import members
from accounts.announcements.models import Announcement
from accounts.models import AuditEntry
from quotas.models import Booking, Claim
from storage.models import Mount, Volume
from tests.cast import Cast
from tests.shared.class_rows import LAUNCH, make_booking, make_class
from tests.shared.clients import ask, browser, script
from tests.shared.concurrency import elsewhere, waits_for_me
from tests.shared.workspace_rows import make_workspace
from workspaces.classes import acting, launching
from workspaces.models import ClassLaunch, Desired, Phase, Seat, Template, Workspace
from workspaces.runs import lifecycle

pytestmark = pytest.mark.django_db

CLASS = {"tenant": "demo", "name": "week-3", "launch": LAUNCH, "people": ["bob"]}


def post(cast: Cast, status: int = 202, **changes: Any) -> Any:
    answer = ask(script(cast.alice), "POST", "class-launches/", CLASS | changes)
    assert answer.status_code == status, answer.json()
    return answer.json()


def said(body: Any) -> dict[str, str]:
    """Return by person the phase, or the code of the refusal."""
    return {
        one["person"]: one["problem"]["code"] if one["problem"] else one["phase"] for one in body["people"]
    }


def test_each_person_gets_a_workspace_or_a_reason_and_a_repeated_request_makes_nothing_twice(
    cast: Cast,
) -> None:
    people = ["bob", "nobody", "carol", "victor", "alice", "bob"]
    first = post(cast, people=people)
    expected = {"bob": "waiting", "nobody": "unknown_person", "carol": "not_a_member"}
    assert said(first) == expected | {"victor": "viewer_only_looks", "alice": "waiting"}
    assert (first["counts"]["people"], first["counts"]["waiting"], first["counts"]["problems"]) == (5, 2, 3)
    row = Workspace.objects.get(owner=cast.bob.user)
    assert (row.name, row.max_runtime_minutes) == ("week-3", 90)
    assert "launched_for_a_class" in row.events.values_list("code", flat=True)
    entry = AuditEntry.objects.get(action="workspace.launch-for", target_id=str(row.pk))
    assert (entry.actor, entry.data["for"]) == (cast.alice.user, "bob")

    members.set_role(cast.alice, cast.demo, "carol", "member")
    again = post(cast, people=people)
    assert said(again) == said(first) | {"carol": "waiting"}
    assert again["people"][0] == first["people"][0]
    lifecycle.delete(cast.bob, row)
    Workspace.objects.filter(pk=row.pk).update(deleted_at=timezone.now())
    people_alone = {name: CLASS[name] for name in ("tenant", "name", "people")}
    assert ask(script(cast.alice), "POST", "class-launches/", people_alone).status_code == 202
    assert Workspace.objects.count() == 3, "what a person deleted does not come back"
    assert post(cast, 409, launch=LAUNCH | {"disk_mib": 64})["error"]["code"] == "class_differs"


def test_what_was_refused_is_tried_again_with_the_next_request(cast: Cast) -> None:
    taken = make_workspace(cast, cast.bob, name="week-3")
    assert said(post(cast)) == {"bob": "name_taken"}
    launching.pass_due()
    Workspace.objects.filter(pk=taken.pk).update(name="mine")
    assert said(post(cast)) == {"bob": "waiting"}


@pytest.mark.django_db(transaction=True)  # a sign-in is in no transaction
def test_a_person_gets_theirs_at_their_next_sign_in_once(cast: Cast) -> None:
    template = Template.objects.create(tenant=cast.demo, name="week-3", body=LAUNCH)
    sent = {"tenant": "demo", "template": "week-3", "people": ["bob", "alice", "nobody"], "when": "sign_in"}
    client = script(cast.alice)
    body = ask(client, "POST", "class-launches/", sent).json()
    assert (body["name"], body["template"]) == ("week-3", template.name)
    assert said(body) == {"bob": "at_sign_in", "alice": "at_sign_in", "nobody": "unknown_person"}
    launching.pass_due()
    assert not Workspace.objects.exists()
    for _ in range(2):
        browser(cast.bob)
        launching.pass_due()
    assert [row.owner for row in Workspace.objects.all()] == [cast.bob.user]
    ask(client, "POST", f"class-launches/{body['id']}/stop/")
    browser(cast.alice)
    launching.pass_due()
    assert Workspace.objects.count() == 1, "nothing more after a stop"


def test_a_booked_class_begins_with_its_booking_and_has_as_many_places(cast: Cast) -> None:
    booking = make_booking(cast, timedelta(hours=1), places=1)
    assert said(post(cast, people=["bob", "alice"], booking=str(booking.pk))) == dict.fromkeys(
        ("bob", "alice"), "pending"
    )
    launching.pass_due()
    assert not Workspace.objects.exists()
    Booking.objects.update(starts_at=F("starts_at") - timedelta(hours=1))
    launching.pass_due()
    (row,) = ClassLaunch.objects.all()
    assert list(row.seats.values_list("username", "code")) == [("bob", ""), ("alice", "booking_full")]
    Booking.objects.update(places=2)
    assert said(post(cast, people=["alice"])) == {"bob": "waiting", "alice": "waiting"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"units_each": 1, "pool": None}, "not_in_booking"),
        ({"cancelled_at": timezone.now()}, "booking_over"),
        ({"tenant": None}, "not_in_booking"),
    ],
)
def test_a_booking_that_does_not_suit_is_refused(cast: Cast, change: dict[str, Any], code: str) -> None:
    if "pool" in change:
        change = change | {"pool": type(cast.pool).objects.create(slug="x", name="x", cluster=cast.cluster)}
    if "tenant" in change:
        change = change | {"tenant": cast.second}
        members.set_role(cast.admin, cast.second, "alice", "owner")
    booking = make_booking(cast, timedelta(), **change)
    status = 409 if code == "booking_over" else 422
    assert post(cast, status, booking=str(booking.pk))["error"]["code"] == code
    assert not ClassLaunch.objects.exists()


def test_secrets_and_a_launch_that_is_not_valid_are_refused_as_a_whole(cast: Cast) -> None:
    assert post(cast, 422, launch=LAUNCH | {"secret_names": ["TOKEN"]})["error"]["code"] == "secrets_needed"
    assert post(cast, 422, launch=LAUNCH | {"image": "none"})["error"]["code"] == "invalid"
    assert post(cast, 422, name=" \u200b")["error"]["code"] == "invalid"
    assert not ClassLaunch.objects.exists()


def test_a_volume_is_handed_out_to_all_to_read(cast: Cast) -> None:
    volume = Volume.objects.create(
        tenant=cast.demo,
        owner=cast.alice.user,
        cluster=cast.cluster,
        name="slides",
        kind="dataset",
        requested_mib=64,
    )
    mounts = [{"volume": str(volume.pk), "path": "/class"}]
    assert said(post(cast, volumes=mounts)) == {"bob": "invalid"}
    assert "slides" in Seat.objects.get().message
    Volume.objects.update(shared="read")
    assert said(post(cast, volumes=mounts)) == {"bob": "waiting"}
    assert Mount.objects.get(volume=volume).read_only


def test_without_an_owner_nothing_more_is_launched(cast: Cast) -> None:
    members.set_role(cast.admin, cast.demo, "bob", "owner")
    post(cast, when="sign_in", people=["bob"])
    members.remove(cast.admin, cast.demo, "alice")
    browser(cast.bob)
    launching.pass_due()
    assert Seat.objects.get().code == "not_an_owner"


@pytest.mark.parametrize("when", ["now", "sign_in"])
def test_what_falls_into_maintenance_is_launched_after_it(cast: Cast, when: str) -> None:
    booking = make_booking(cast, timedelta(hours=1)) if when == "now" else None
    post(cast, when=when, booking=str(booking.pk) if booking else None)
    now = timezone.now()
    Announcement.objects.create(text="New switches", shown_from=now, no_launches_from=now)
    Booking.objects.update(starts_at=F("starts_at") - timedelta(hours=1))
    launching.on_sign_in(cast.bob.user)
    launching.pass_due()
    launching.make_all(launching.due(), 1)  # maintenance that began during the tick
    assert not Workspace.objects.exists() and Seat.objects.get().code == ""
    Announcement.objects.all().delete()
    launching.pass_due()
    assert Workspace.objects.get().owner == cast.bob.user


def test_an_admin_outside_of_the_team_gets_none(cast: Cast) -> None:
    name = cast.admin.user.username
    assert said(post(cast, people=[name])) == {name: "not_a_member"}
    members.set_role(cast.admin, cast.demo, name, "member")
    assert said(post(cast, people=[name])) == {name: "waiting"}


@pytest.mark.django_db(transaction=True)
def test_a_stop_waits_for_the_launch_under_way_and_stops_it_too(cast: Cast) -> None:
    row = make_class(cast)
    with transaction.atomic():
        launching.alone(cast.demo)
        stopping = elsewhere(lambda: acting.stop(cast.alice, row))
        while stopping.is_alive() and not waits_for_me():
            sleep(0.01)
        bobs = make_workspace(cast, cast.bob, Phase.WAITING)
        row.seats.filter(username="dora").update(workspace=bobs)
    stopping.join(30)
    assert Workspace.objects.get().desired == Desired.STOPPED


def test_all_are_stopped_and_extended_and_who_was_not_is_said(cast: Cast) -> None:
    body = post(cast, people=["bob", "alice"])
    now = timezone.now()
    bobs = Workspace.objects.get(owner=cast.bob.user)
    Workspace.objects.filter(pk=bobs.pk).update(stops_at=now + timedelta(minutes=5), phase=Phase.READY)
    client, path = script(cast.alice), f"class-launches/{body['id']}/"
    answer = ask(client, "POST", f"{path}extend/", {"minutes": 30}).json()
    assert said(answer) == {"bob": "ready", "alice": "clock_not_running"}
    bobs.refresh_from_db()
    assert bobs.stops_at == now + timedelta(minutes=35)
    Workspace.objects.filter(pk=bobs.pk).update(phase=Phase.WAITING)
    stopped = ask(client, "POST", f"{path}stop/").json()
    assert said(stopped) == {"bob": "stopped", "alice": "stopped"}
    assert not Workspace.objects.filter(desired=Desired.RUNNING).exists()
    assert not Claim.objects.filter(state=Claim.State.WAITING).exists()
    assert ask(client, "DELETE", path).status_code == 204
    assert (ClassLaunch.objects.count(), Workspace.objects.count()) == (0, 2)


def test_with_a_key_the_same_answer_comes_again(cast: Cast) -> None:
    client = script(cast.alice)
    answers = [ask(client, "POST", "class-launches/", CLASS, **{"Idempotency-Key": "k"}).json() for _ in "ab"]
    assert answers[0] == answers[1] and Workspace.objects.count() == 1
