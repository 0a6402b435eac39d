"""Class launches as rows, with people for each reason to have no workspace, and bookings for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from quotas.models import Booking
from tests.cast import Cast
from workspaces.models import ClassLaunch, Seat, Template, Workspace

LAUNCH: dict[str, Any] = {"image": "jupyter", "flavor": "a100-1", "max_runtime_minutes": 90}


def make_class(cast: Cast, *workspaces: Workspace) -> ClassLaunch:
    """Make a class of demo by alice, with a seat for each workspace, one at sign-in, one due, and one refused."""
    row = ClassLaunch.objects.create(
        tenant=cast.demo,
        name="week 3",
        template=Template.objects.create(tenant=cast.demo, name="Course week 3", body=LAUNCH),
        body=LAUNCH,
        by=cast.alice.user,
        at_sign_in=True,
    )
    refusal = {
        "code": "not_a_member",
        "message": "nobody is not a member of Demo.",
        "hint": "Check the name.",
    }
    Seat.objects.bulk_create(
        [
            *(
                Seat(
                    class_launch=row, username=f"{one.owner.username}-{number}", user=one.owner, workspace=one
                )
                for number, one in enumerate(workspaces)
            ),
            Seat(class_launch=row, username="alice", user=cast.alice.user),
            Seat(class_launch=row, username="dora", due_at=timezone.now()),
            Seat(class_launch=row, username="nobody", **refusal),
        ]
    )
    return row


def make_booking(cast: Cast, begins: timedelta, **values: Any) -> Booking:
    """Make a booking of demo that begins so much later, and lasts two hours."""
    now = timezone.now()
    of = {"pool": cast.pool, "tenant": cast.demo, "created_by": cast.alice.user, "title": "week 3"}
    of |= {"starts_at": now + begins, "ends_at": now + begins + timedelta(hours=2), "units_each": 1}
    return Booking.objects.create(**(of | values))
