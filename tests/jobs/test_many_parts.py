"""Jobs of many parts: a look costs the same for many as for few, and nobody's parts fill the queue."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.errors import TooMany
from jobs.cluster.look import look
from jobs.models import Job
from jobs.runs import lifecycle, parts
from quotas import admission
from quotas.models import Claim, Quota
from tests.cast import Cast
from tests.shared.counted import queries
from tests.shared.driving_jobs import submitted
from tests.shared.looking import PlayedMirror
from tests.shared.played.jobs import PlayedJobs
from workloads.pods.wanted import Shared

pytestmark = pytest.mark.django_db


class Counting(PlayedJobs):
    """Cluster that counts the calls that it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.before_call = self._count

    def _count(self) -> None:
        self.calls += 1


def look_at(job: Job, api: PlayedJobs) -> None:
    row = Job.objects.select_related("secret", "pool__cluster").get(pk=job.pk)
    assert look(row, PlayedMirror(api), Shared([job.pk]))


def quiet(cast: Cast, api: Counting, count: int) -> tuple[int, int]:
    """Return the queries and calls of a look at a job with so many running parts, to which nothing has happened."""
    Quota.objects.update(nominal_gpus=16)
    job = submitted(cast, f"parts-{count}", completions=count, parallelism=count)
    for _ in range(6):
        admission.admit(cast.pool.pk)
        look_at(job, api)
        api.step()
    assert Job.objects.get(pk=job.pk).parts.filter(phase="running").count() == count
    Job.objects.update(dirty_since=None)
    api.calls = 0
    return queries(lambda: look_at(job, api)), api.calls


def test_a_quiet_look_costs_the_same_for_many_parts_as_for_two(cast: Cast) -> None:
    api = Counting()
    few, no_calls = quiet(cast, api, 2)
    assert no_calls == 0
    assert quiet(cast, api, 6) == (few, 0)


def states(job: Job) -> dict[str, Any]:
    phases = list(job.parts.values_list("phase", flat=True))
    return {phase: phases.count(phase) for phase in set(phases)}


def test_parts_beyond_what_a_person_may_have_in_the_queue_wait_for_room_there(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "MOST_WAITING", 3)
    job = submitted(cast, completions=6, parallelism=6)
    assert states(job) == {"waiting": 3, "pending": 3}
    with pytest.raises(TooMany):
        submitted(cast, "second")
    assert not Job.objects.filter(name="second").exists()
    api = PlayedJobs()
    for _ in range(4):
        admission.admit(cast.pool.pk)
        look_at(job, api)
    assert states(job).get("pending", 0) == 0
    assert "failed" not in states(job)
    assert Claim.objects.filter(holder_id=job.pk).count() == 6


def test_a_cancellation_withdraws_what_waits_in_few_queries(cast: Cast) -> None:
    def cost(count: int) -> int:
        job = submitted(cast, f"waits-{count}", completions=count, parallelism=count)
        made = queries(lambda: lifecycle.cancel(cast.alice, job))
        assert states(job) == {"cancelled": count}
        assert not Claim.objects.filter(holder_id=job.pk).exclude(state=Claim.State.RELEASED).exists()
        return made

    assert cost(30) - cost(10) <= 20  # one word to open pages for each claim
