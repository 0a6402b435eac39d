"""Signals from the rooms below that mark jobs: changed shares and networks reach tenants that run jobs alone."""

from __future__ import annotations

import pytest

from clusters.api import Api
from clusters.signals import networks_changed
from jobs.models import Job
from quotas.models import Quota
from tests.cast import Cast
from tests.shared.driving_jobs import RUNS, drive, in_phase, submitted

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


def test_a_changed_share_and_networks_mark_a_job_that_is_up(house: Cast) -> None:
    job = drive(submitted(house, ends=RUNS), in_phase("running"))
    for change in (
        Quota.objects.get(tenant=house.demo).save,
        lambda: networks_changed.send(sender=None, cluster=house.cluster),
    ):
        Job.objects.update(dirty_since=None)
        change()
        job.refresh_from_db()
        assert job.dirty_since is not None


def test_the_ceiling_of_a_namespace_follows_the_limit_while_only_jobs_run(house: Cast, api: Api) -> None:
    job = drive(submitted(house, ends=RUNS), in_phase("running"))

    def is_applied(_row: Job) -> bool:
        ceiling = api.get("ResourceQuota", house.demo.namespace, "berth")
        return ceiling is not None and ceiling["spec"]["hard"]["requests.nvidia.com/gpu"] == "6"

    assert not is_applied(job)
    quota = Quota.objects.get(tenant=house.demo)
    quota.nominal_gpus = 6
    quota.save()
    drive(job, is_applied)
