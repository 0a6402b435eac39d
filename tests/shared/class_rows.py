"""A class launch as rows: one person with a workspace, others without, for each reason."""

from __future__ import annotations

from django.utils import timezone

from tests.cast import Cast
from workspaces.models import ClassLaunch, Seat, Workspace


def make_class(cast: Cast, *workspaces: Workspace) -> ClassLaunch:
    """Make a class of demo by alice, with a seat for each workspace, one at sign-in, one due, and one refused."""
    row = ClassLaunch.objects.create(
        tenant=cast.demo,
        name="week 3",
        body={"image": "jupyter", "flavor": "a100-1"},
        by=cast.alice.user,
        at_sign_in=True,
    )
    refusal = {"code": "unknown_person", "message": "There is no person “nobody”.", "hint": "Check the name."}
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
