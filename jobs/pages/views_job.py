"""Pages of one job, and the actions of its buttons. Actions that lose something ask first."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from accounts.access import Actor
from accounts.errors import SHOWN_IN_PLACE
from accounts.notices import inbox
from accounts.rest.actors import actor_of
from jobs import access
from jobs.api.representation import MOST_ATTEMPTS, Json, event_json, in_brief, job_json
from jobs.cluster.shown import manifests_of
from jobs.models import OVER, Desired, Job, Phase
from jobs.runs import lifecycle
from workloads.logs.panel import Panel

EVENTS_SHOWN = 200
IN_FULL = ("overview", "settings")  # tabs that show more than a job in brief
ACTIONS: dict[str, Callable[[Actor, Job], bool]] = {
    "cancel": lifecycle.cancel,
    "retry": lifecycle.retry,
    "retry-failed": lifecycle.retry_failed,
    "delete": lifecycle.delete,
}
ASKED_FIRST = ("cancel", "delete")


@never_cache
@login_required
@require_GET
def tab(request: HttpRequest, id: UUID, name: str) -> HttpResponse:
    return job_page(request, access.get(actor_of(request), id), name)


def job_page(request: HttpRequest, job: Job, tab: str, *, status: int = 200, **more: Any) -> HttpResponse:
    actor = actor_of(request)
    is_own, reads_output = access.is_own(actor, job), access.may_manage(actor, job)
    is_refresh = bool(request.headers.get("HX-Request"))  # takes #now alone, which no tab's own block is in
    shown = job_json(job, actor) if tab in IN_FULL else in_brief([job], actor)[0]
    context: dict[str, Any] = {
        "section": "jobs",
        "tab": tab,
        "job": job,
        "shown": shown,
        "is_own": is_own,
        "may": what_may(actor, job),
        "retry_kind": "filled" if job.phase == Phase.FAILED and job.completions == 1 else "",
    }
    if tab == "overview":
        context["attempts"] = [one | {"span": _span(one)} for one in reversed(shown["attempts"])]
        context["most_attempts"] = MOST_ATTEMPTS
        if reads_output and not is_refresh:
            api = reverse("api-v1:job-logs", args=[job.pk])
            context["log"] = Panel(request, job.pk, socket=f"/ws/jobs/{job.pk}/logs/", api=api)
    if tab == "activity" and not is_refresh:
        events = job.events.order_by("-number")[:EVENTS_SHOWN]
        context["events"] = [(event, event_json(event)) for event in events]
    if tab == "settings" and not is_refresh:
        context["manifest"] = json.dumps(manifests_of(job), indent=2) if reads_output else ""
        context["command"] = shlex.join(job.command)
        context["script"] = job.secret.clear_script() if is_own else ""
    if not is_refresh:
        inbox.read_about(actor.user, job.pk)
    return render(request, f"jobs/{tab}.html", context | more, status=status)


def _span(attempt: Json) -> timedelta | None:
    """Time that an attempt's program took, once it has ended."""
    times = [parse_datetime(attempt[name] or "") for name in ("started_at", "ended_at")]
    return times[1] - times[0] if times[0] and times[1] else None


def what_may(actor: Actor, job: Job) -> dict[str, bool]:
    """Actions that make sense now for this person. The use cases decide; this only leaves out what they refuse."""
    is_there = job.desired != Desired.DELETED
    is_over = job.phase in OVER
    manages = is_there and access.may_manage(actor, job)
    runs_own = manages and access.is_own(actor, job)
    return {
        "cancel": manages and not is_over and job.desired == Desired.DONE,
        "retry": runs_own and is_over,
        "retry_failed": runs_own and is_over and job.completions > 1 and job.phase != Phase.SUCCEEDED,
        "delete": manages,
        "duplicate": not job.deleted_at and access.may_submit(actor, job.tenant),
    }


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def act(request: HttpRequest, id: UUID, verb: str) -> HttpResponse:
    """Ask the question on GET, if the action loses something; carry the action out on POST."""
    if verb not in ACTIONS:
        raise Http404
    actor = actor_of(request)
    job = access.get(actor, id)
    if request.method == "GET":
        access.require_manage(actor, job)
        if verb in ASKED_FIRST and what_may(actor, job)[verb]:
            context = {"section": "jobs", "job": job, "verb": verb, "is_own": access.is_own(actor, job)}
            return render(request, "jobs/question.html", context)
        return redirect("job", id=id)
    try:
        ACTIONS[verb](actor, job)
    except SHOWN_IN_PLACE as refusal:
        messages.error(request, f"{refusal.message} {refusal.hint}")
        return redirect("job", id=id)
    if verb == "delete":
        messages.success(request, _("“%(name)s” is being deleted.") % {"name": job.name})
        return redirect("jobs")
    return redirect("job", id=id)
