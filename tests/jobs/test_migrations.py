"""Migrations that change rows of jobs, forth and back."""

from __future__ import annotations

from uuid import uuid4

import pytest

from jobs.models import Attempt
from tests.cast import Cast
from tests.shared.job_rows import make_job
from tests.shared.migrating import as_migrated, migrate

__all__ = ["as_migrated"]

BEFORE = ("jobs", "0007_conditions_of_an_attempt")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("as_migrated")
def test_what_was_seen_of_a_pod_is_kept(cast: Cast) -> None:
    part = make_job(cast, cast.alice).parts.get()
    member = {"uid": "u-1", "node": "gpu-1", "ended": False, "exit_code": None, "reason": "", "out_code": ""}
    seen = Attempt.objects.create(part=part, number=1, run=uuid4(), node="gpu-1", members={"0": member})
    unseen = Attempt.objects.create(part=part, number=2, run=uuid4(), node="gpu-1")
    migrate(BEFORE)
    migrate()
    seen.refresh_from_db()
    unseen.refresh_from_db()
    assert (seen.members, seen.unproven) == ({"0": member}, True)
    assert unseen.members == {}
