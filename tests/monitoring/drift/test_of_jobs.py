"""Objects of jobs in a look at a whole cluster: those of attempts are no finding, what an attempt left is unwanted."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from clusters.api import Api
from tests.cast import Cast
from tests.monitoring.drift.stage import look_for_a_while, planted
from tests.shared.driving_jobs import RUNS, attempts, drive, in_phase, submitted

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


def of_an_attempt(kind: str, namespace: str, job: str, run: str, **body: Any) -> dict[str, Any]:
    made = planted(kind, namespace, f"job-{run}", **body)
    labels = made["metadata"]["labels"]
    del labels["berth.dev/workspace"]
    labels |= {"berth.dev/job": job, "berth.dev/run": run}
    return made


def service(namespace: str, job: str, run: str) -> dict[str, Any]:
    spec = {"clusterIP": "None", "ports": [{"port": 1}], "selector": {"berth.dev/run": run}}
    return of_an_attempt("Service", namespace, job, run, spec=spec)


def policy(namespace: str, job: str, run: str) -> dict[str, Any]:
    made = of_an_attempt("NetworkPolicy", namespace, job, run, spec={"podSelector": {}})
    return made | {"apiVersion": "networking.k8s.io/v1"}


def test_a_job_that_runs_is_no_finding_and_what_no_attempt_wants_is(house: Cast, api: Api) -> None:
    job = drive(submitted(house, ends=RUNS), in_phase("running"))
    namespace, run = job.tenant.namespace, str(attempts(job)[0].run)
    for body in (service(namespace, str(job.pk), run), policy(namespace, str(job.pk), run)):
        api.apply(body)
    assert look_for_a_while(house.cluster) == set()
    left = str(uuid4())
    for body in (service(namespace, str(job.pk), left), policy(namespace, str(job.pk), left)):
        api.apply(body)
    assert look_for_a_while(house.cluster) == {
        ("unwanted", "Service", f"job-{left}"),
        ("unwanted", "NetworkPolicy", f"job-{left}"),
    }
