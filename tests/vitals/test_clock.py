"""Times written just now, by a clock that may have been set since."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from vitals.clock import is_near_now
from vitals.models import Process

SPAN = timedelta(seconds=15)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("ago_seconds", "is_about_now"), [(0, True), (14, True), (16, False), (-14, True), (-3600, False)]
)
def test_a_time_far_in_the_future_is_not_now(ago_seconds: int, is_about_now: bool) -> None:
    now = timezone.now()
    Process.objects.create(part="web", host="a", pid=1, seen_at=now - timedelta(seconds=ago_seconds))
    assert Process.objects.filter(is_near_now("seen_at", now, SPAN)).exists() is is_about_now
