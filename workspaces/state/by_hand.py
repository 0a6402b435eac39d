"""What a person does by hand holds for the rest of their day: the schedule leaves the workspace alone."""

from __future__ import annotations

from django.utils import timezone

from accounts.locks import locked
from workspaces.models import Schedule, Workspace


def note(row: Workspace) -> bool:
    """Note it on the schedule, and drop what that announced. Return True if it had announced a stop.

    Inside `changing`: the schedule acts under the same lock.
    """
    schedule = locked(Schedule.objects.filter(workspace=row)).first()
    if schedule is None:
        return False
    had_announced = schedule.stops_at is not None
    schedule.by_hand_at = timezone.now()
    schedule.stops_at = schedule.waits_until = None
    schedule.save(update_fields=["by_hand_at", "stops_at", "waits_until"])
    return had_announced
