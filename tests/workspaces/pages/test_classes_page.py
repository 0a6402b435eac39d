"""Pages of class launches: the form of a new one, its people, and what is done for all."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.cast import Cast
from tests.shared.class_rows import LAUNCH, make_booking, make_class
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.reading import words
from workspaces.models import ClassLaunch, Phase, Template, Workspace

pytestmark = pytest.mark.django_db


def test_an_owner_launches_a_class_and_adds_people(cast: Cast) -> None:
    alice = browser(cast.alice)
    assert "save it as a template" in words(alice.get("/class-launches/?tenant=demo"))
    template = Template.objects.create(tenant=cast.demo, name="Week 3", body=LAUNCH)
    booking = make_booking(cast, timedelta())
    page = alice.get(f"/class-launches/?booking={booking.pk}")
    assert page.context["form"]["booking"].value() == str(booking.pk)
    sent = {"template": template.pk, "people": "bob, nobody\n", "when": "now", "booking": booking.pk}
    answer = alice.post("/class-launches/", sent)
    row = ClassLaunch.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/class-launches/{row.pk}/")
    page = alice.get(answer["Location"])
    assert {line.person: line.phase for line in page.context["lines"]} == {
        "bob": "waiting",
        "nobody": "refused",
    }
    assert page.context["form"].initial == {"people": "nobody"}
    again = alice.post(f"/class-launches/{row.pk}/people/", {"people": "alice"})
    assert again.status_code == 302 and Workspace.objects.count() == 1, "its one place is taken"
    assert row.seats.get(username="alice").code == "booking_full"


def test_wrong_input_is_said_in_place(cast: Cast) -> None:
    alice = browser(cast.alice)
    template = Template.objects.create(
        tenant=cast.demo, name="Week 3", body=LAUNCH | {"secret_names": ["KEY"]}
    )
    sent = {"template": template.pk, "people": "bob", "when": "now"}
    answer = alice.post("/class-launches/", sent)
    assert answer.status_code == 422 and "KEY" in words(answer)
    assert alice.post("/class-launches/", sent | {"people": "x " * 201}).status_code == 422
    assert not ClassLaunch.objects.exists()


def test_all_are_stopped_after_a_question(cast: Cast) -> None:
    alice = browser(cast.alice)
    row = make_class(cast, make_workspace(cast, cast.bob, Phase.WAITING))
    there = f"/class-launches/{row.pk}/"
    assert "Stop all workspaces" in words(alice.get(f"{there}stop/"))
    assert alice.post(f"{there}extend/", {"minutes": "0"}).status_code == 302
    page = alice.post(f"{there}stop/", follow=True)
    assert [line.phase for line in page.context["lines"]] == ["stopped", "at_sign_in", "pending", "refused"]
    assert alice.post(f"{there}delete/").status_code == 302 and not ClassLaunch.objects.exists()
