"""Jobs that are looked at though nothing was heard of them: none that waits or that is over and left nothing."""

from __future__ import annotations

import pytest
from django.db import connection

from clusters.api import Api
from jobs.cluster.keeper import Keeper
from jobs.models import Job
from jobs.runs.following import After
from tests.cast import Cast
from tests.shared.driving_jobs import PASSES, RUNS, drive, in_phase, submitted
from tests.shared.looking import listed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


def looked_at(house: Cast, job: Job) -> tuple[bool, bool]:
    """Return if the clock, and if a list, brings a look at the job once its marks are answered."""
    Job.objects.filter(pk=job.pk).update(dirty_since=None)
    keeper = Keeper(house.cluster, listed(house.cluster, house.demo.namespace))
    return tuple(rows.filter(pk=job.pk).exists() for rows in (keeper.unsettled(), keeper.after_list()))  # type: ignore[return-value]


@pytest.mark.slow
def test_a_job_in_the_queue_waits_for_a_mark(house: Cast) -> None:
    job = submitted(house, ends=RUNS)
    assert looked_at(house, job) == (False, False)
    assert looked_at(house, drive(job, in_phase("running"))) == (True, True)


def test_a_job_with_parts_that_are_not_in_the_queue_yet_is_looked_at(house: Cast) -> None:
    assert looked_at(house, submitted(house, completions=3, parallelism=2)) == (True, True)


def test_a_job_that_waits_for_others_is_looked_at(house: Cast) -> None:
    first = submitted(house, "first", ends=RUNS)
    assert looked_at(house, submitted(house, "second", after=[After(first.pk)])) == (True, True)


@pytest.mark.slow
def test_a_job_that_is_over_is_looked_at_only_while_a_pod_of_it_runs(house: Cast, api: Api) -> None:
    job = drive(submitted(house, ends=PASSES), in_phase("succeeded"))
    assert looked_at(house, job) == (False, False)
    other = drive(submitted(house, "late", ends=RUNS), in_phase("running"))
    Job.objects.filter(pk=other.pk).update(phase="succeeded")
    assert looked_at(house, other) == (False, True)


MANY_OVER = """
INSERT INTO jobs_job SELECT copy.* FROM jobs_job, generate_series(1, 2000) n, LATERAL jsonb_populate_record(
    jobs_job, jsonb_build_object('id', gen_random_uuid(), 'name', n, 'phase', 'succeeded', 'dirty_since', NULL)
) copy
"""


def test_the_clock_does_not_read_the_jobs_that_are_over(house: Cast) -> None:
    submitted(house, ends=RUNS)
    with connection.cursor() as cursor:
        cursor.execute(MANY_OVER)
        cursor.execute("ANALYZE jobs_job")
    keeper = Keeper(house.cluster, listed(house.cluster, house.demo.namespace))
    assert "job_unsettled" in keeper.unsettled().explain()
