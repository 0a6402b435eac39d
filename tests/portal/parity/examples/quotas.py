"""Examples of bookings, and of what admins do with claims and pools."""

from __future__ import annotations

from quotas import admission
from quotas.models import Claim
from tests.portal.parity.bodies import BOOKING
from tests.portal.parity.book import example
from tests.portal.parity.scene import Scene
from tests.shared.workspace_rows import make_workspace


@example("POST bookings/", "bookings/")
def a_booking(scene: Scene) -> None:
    assert scene.alice.get(booked(scene))["title"] == "class"


@example("PATCH bookings/<uuid:id>/", "bookings/<uuid:id>/")
def a_booking_is_changed(scene: Scene) -> None:
    made = booked(scene)
    scene.alice.api(f"PATCH {made}", {"title": "exam", "places": 2})
    found = scene.alice.get(made)
    assert (found["title"], found["places"]) == ("exam", 2)


@example("DELETE bookings/<uuid:id>/", "bookings/<uuid:id>/cancel/", "quotas.booking cancel")
def a_booking_is_cancelled(scene: Scene) -> None:
    made = booked(scene)
    scene.alice.api(f"DELETE {made}")
    assert scene.alice.get(made)["state"] == "cancelled"


def booked(scene: Scene) -> str:
    """Book GPUs. Return the booking's address."""
    made = scene.alice.api("POST bookings/", BOOKING)
    return f"bookings/{made['id']}/"


@example("POST budget-hours/", "quotas.budget change")
def hours_are_added_to_a_month(scene: Scene) -> None:
    scene.admin.api("POST budgets/", {"tenant": "demo", "gpu_hours": 10})
    added = scene.admin.api("POST budget-hours/", {"tenant": "demo", "add_gpu_hours": 2.5})
    [budget] = scene.alice.list("budgets/")
    assert budget["limit_gpu_hours"] == added["limit_gpu_hours"] == 12.5


@example("POST admin-actions/quotas.pool/close/", "quotas.pool close")
def a_pool_is_closed(scene: Scene) -> None:
    scene.admin.acts("quotas.pool", "close", scene.cast.pool.pk)
    assert not scene.admin.get("pools/a100/")["is_open"]


@example("POST admin-actions/quotas.pool/open/", "quotas.pool open")
def a_pool_is_opened(scene: Scene) -> None:
    scene.admin.api("PATCH pools/a100/", {"is_open": False})
    scene.admin.acts("quotas.pool", "open", scene.cast.pool.pk)
    assert scene.admin.get("pools/a100/")["is_open"]


@example("POST admin-actions/quotas.claim/confirm_end/", "quotas.claim confirm_end")
def the_end_of_a_lost_run_is_confirmed(scene: Scene) -> None:
    workspace = make_workspace(scene.cast, scene.cast.alice)
    claim = Claim.objects.get(holder_id=workspace.pk)
    admission.flag_unproven_end(claim.pk)
    scene.admin.acts("quotas.claim", "confirm_end", claim.pk)
    claim.refresh_from_db()
    assert claim.state == Claim.State.RELEASED
