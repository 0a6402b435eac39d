"""Jobs that wait for others: held without a claim, begun, not started, and waiting again after a retry."""

from __future__ import annotations

from itertools import product
from uuid import uuid4

import pytest

from accounts.errors import Conflict, Invalid, TooMany
from jobs.api.representation import job_json
from jobs.duplicate import duplicate
from jobs.models import OVER, Job, On, Phase
from jobs.runs import following, lifecycle
from jobs.runs.following import After, Standing, standing
from tests.cast import Cast
from tests.shared.driving_jobs import FAILS, RUNS, drive, held, in_phase, submitted, told

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


def after(*jobs: Job, on: str = On.SUCCESS) -> list[After]:
    return [After(job.pk, on) for job in jobs]


@pytest.mark.parametrize(("on", "phase"), list(product(On.values, Phase.values)))
def test_what_is_not_over_is_waited_for_and_what_is_over_never_again(on: str, phase: str) -> None:
    stands = standing(on, phase, None)
    assert (stands == Standing.WAITS) == (phase not in OVER)
    assert (stands == Standing.NEVER) == (on == "success" and phase in ("failed", "cancelled"))


@pytest.mark.parametrize("on", On.values)
def test_a_version_that_is_being_taken_is_waited_for(on: str) -> None:
    assert standing(on, Phase.SUCCEEDED, "pending") == Standing.WAITS
    assert standing(on, Phase.SUCCEEDED, "ready") == Standing.MET
    assert standing(on, Phase.SUCCEEDED, "failed") == (Standing.MET if on == "end" else Standing.NEVER)


@pytest.mark.slow
def test_a_job_has_no_claim_while_it_waits_and_begins_by_itself(house: Cast) -> None:
    first = submitted(house, "first")
    then = submitted(house, "then", after=after(first))
    assert (then.phase, held(then)) == ("waiting", 0)
    then = drive(then, lambda row: row.message_code == following.WAITS)
    shown = job_json(then, house.alice)
    assert (shown["problem"]["code"], shown["after"][0]["standing"]) == ("waits_for_jobs", "waits")
    assert shown["message"] == "Waiting for “first”."

    drive(first, in_phase("succeeded"))
    then = drive(then, in_phase("succeeded"))
    assert told(then).index("released") < told(then).index("admitted")
    assert job_json(then, house.alice)["after"][0]["standing"] == "met"


@pytest.mark.slow
def test_the_end_of_a_job_asks_for_looks_at_those_that_wait_for_it(house: Cast) -> None:
    first = submitted(house, "first", ends=RUNS)
    then = drive(
        submitted(house, "then", after=after(first, on="end")),
        lambda row: row.message_code == following.WAITS,
    )
    Job.objects.update(dirty_since=None)
    lifecycle.cancel(house.alice, first)
    drive(first, in_phase("cancelled"))
    then.refresh_from_db()
    assert then.dirty_since is not None
    drive(then, in_phase("succeeded"))


@pytest.mark.slow
def test_a_job_is_not_started_if_the_other_does_not_succeed(house: Cast) -> None:
    first = submitted(house, "first", ends=FAILS, retries=0)
    then = submitted(house, "then", after=after(first))
    last = submitted(house, "last", after=after(then))
    at_end = submitted(house, "at end", after=after(first, on="end"))
    drive(first, in_phase("failed"))
    then, last = drive(then, in_phase("cancelled")), drive(last, in_phase("cancelled"))
    assert ((then.failure or {})["code"], (then.failure or {})["data"]["name"]) == ("not_started", "first")
    assert (last.failure or {})["data"]["name"] == "then"
    assert (then.message_code, held(then), held(last)) == ("not_started", 0, 0)
    drive(at_end, in_phase("succeeded"))


@pytest.mark.slow
def test_a_retry_lets_those_wait_again_that_were_not_started(house: Cast) -> None:
    first = submitted(house, "first", ends=FAILS, retries=0)
    other = submitted(house, "other", ends=FAILS, retries=0)
    then = submitted(house, "then", after=after(first))
    last = submitted(house, "last", after=after(then))
    of_other = submitted(house, "of other", after=after(other))
    for job in (first, other):
        drive(job, in_phase("failed"))
    for job in (then, last, of_other):
        drive(job, in_phase("cancelled"))
    with pytest.raises(Conflict) as refused:
        lifecycle.retry(house.alice, then)
    assert refused.value.code == "predecessor_failed"

    Job.objects.filter(pk=first.pk).update(image=house.image)  # mended: this one runs
    assert lifecycle.retry(house.alice, first)
    for job, phase in ((then, "waiting"), (last, "waiting"), (of_other, "cancelled")):
        job.refresh_from_db()
        assert job.phase == phase
    assert then.failure is None
    assert then.ended_at is None


@pytest.mark.slow
def test_a_cancelled_job_stays_so_when_the_other_is_retried(house: Cast) -> None:
    first = submitted(house, "first", ends=FAILS, retries=0)
    then = submitted(house, "then", after=after(first))
    assert lifecycle.cancel(house.alice, then)
    drive(first, in_phase("failed"))
    lifecycle.retry(house.alice, first)
    then.refresh_from_db()
    assert (then.phase, then.failure) == ("cancelled", None)


@pytest.mark.slow
def test_the_deletion_of_a_job_ends_what_waits_for_its_success(house: Cast) -> None:
    first = submitted(house, "first", ends=RUNS)
    then = submitted(house, "then", after=after(first))
    at_end = submitted(house, "at end", after=after(first, on="end"))
    lifecycle.delete(house.alice, first)
    drive(first, lambda row: row.deleted_at is not None)
    drive(then, in_phase("cancelled"))
    drive(at_end, in_phase("succeeded"))


@pytest.mark.slow
def test_a_job_that_waits_can_be_deleted(house: Cast) -> None:
    then = submitted(house, "then", after=after(submitted(house, "first", ends=RUNS)))
    lifecycle.delete(house.alice, then)
    drive(then, lambda row: row.deleted_at is not None)


def test_jobs_of_other_tenants_are_not_there(house: Cast) -> None:
    first = submitted(house, "first")
    Job.objects.filter(pk=first.pk).update(tenant=house.second)
    for wish in (After(first.pk), After(uuid4())):
        with pytest.raises(Invalid) as refused:
            submitted(house, "then", after=[wish])
        assert "There is no job" in refused.value.fields["after"][0]
    assert Job.objects.count() == 1


@pytest.mark.slow
def test_what_can_never_begin_is_refused(house: Cast) -> None:
    first = drive(submitted(house, "first", ends=FAILS, retries=0), in_phase("failed"))
    for wishes in (after(first), after(first, first, on="end")):
        with pytest.raises(Invalid):
            submitted(house, "then", after=wishes)
    many = [submitted(house, f"first {number}") for number in range(following.MOST + 1)]
    with pytest.raises(Invalid):
        submitted(house, "then", after=after(*many))


def test_one_person_has_so_many_jobs_that_wait(house: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MOST_HELD", 1)
    first = submitted(house, "first", ends=RUNS)
    submitted(house, "then", after=after(first))
    with pytest.raises(TooMany):
        submitted(house, "one more", after=after(first))


def test_a_duplicate_waits_for_nobody(house: Cast) -> None:
    then = submitted(house, "then", after=after(submitted(house, "first", ends=RUNS)))
    again = duplicate(house.alice, then)
    assert (again.is_held, held(again)) == (False, 1)
