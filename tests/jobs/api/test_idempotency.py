"""Requests that change a job, each sent twice with the same key: one effect, and the same answer again."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import AuditEntry
from jobs.api.urls import urlpatterns
from jobs.models import Attempt, Event, Job, Part
from tests.cast import Cast
from tests.shared.clients import api, ask
from tests.shared.job_rows import end_in_rows, make_job

pytestmark = pytest.mark.django_db

BODY = {"tenant": "demo", "name": "other", "image": "jupyter", "flavor": "a100-1", "command": ["true"]}
# By address: whether its job is over before, and the body.
REQUESTS: dict[str, tuple[str, bool, Any]] = {
    "jobs/": ("POST", False, BODY),
    "jobs/<uuid:id>/": ("DELETE", False, None),
    "jobs/<uuid:id>/cancel/": ("POST", False, None),
    "jobs/<uuid:id>/retry/": ("POST", True, None),
    "jobs/<uuid:id>/retry-failed/": ("POST", True, None),
    "jobs/<uuid:id>/duplicate/": ("POST", False, None),
    "jobs/<uuid:id>/stop-rest/": ("POST", False, None),
}
# It may be repeated: a value that was taken is not taken again.
# It makes a job as the first address does.
OF_WORKSPACES = {"workspaces/<uuid:id>/job/"}
OTHERS = {"jobs/<uuid:id>/metrics/"}


def test_each_address_that_changes_a_job_is_here() -> None:
    views = {str(address.pattern): vars(address.callback)["view_class"] for address in urlpatterns}
    writing = {path for path, view in views.items() if hasattr(view, "post") or hasattr(view, "delete")}
    assert writing == {*REQUESTS, *OF_WORKSPACES, *OTHERS}


def effects() -> dict[str, Any]:
    return {
        "jobs": Job.objects.count(),
        "phases": sorted(Part.objects.values_list("phase", "run")),
        "attempts": Attempt.objects.count(),
        "events": Event.objects.count(),
        "audited": AuditEntry.objects.count(),
    }


@pytest.mark.parametrize("address", REQUESTS)
def test_the_same_request_twice_has_one_effect(cast: Cast, address: str) -> None:
    method, is_over, body = REQUESTS[address]
    job = make_job(cast, cast.bob, completions=2, parallelism=2)
    if is_over:
        end_in_rows(job)
    path = address.replace("<uuid:id>", str(job.pk))
    script = api(cast.bob)
    before = effects()
    first = ask(script, method, path, body, **{"Idempotency-Key": "once"})
    after = effects()
    assert first.status_code in (200, 201, 202)
    assert after != before
    second = ask(script, method, path, body, **{"Idempotency-Key": "once"})
    assert effects() == after
    if method == "POST":
        assert (second.status_code, second.content) == (first.status_code, first.content)
        assert second["Idempotency-Replayed"] == "true"
