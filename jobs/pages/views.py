"""List of jobs, and actions on several of them at once."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST
from rest_framework.exceptions import ValidationError

from accounts.access import Actor
from accounts.rest.actors import actor_of
from jobs import access
from jobs.api.representation import in_brief, with_related
from jobs.models import Job, Phase
from workloads.pages.lists import Bulk, listed
from workloads.sizes.choices import launch_tenants

from .views_job import ACTIONS, ASKED_FIRST


@never_cache
@login_required
@require_GET
def jobs(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    try:
        found = listed(request, access.visible(actor), with_related, Phase.choices)
    except ValidationError:  # an address that was cut or made up
        return redirect("jobs")
    context = {
        "section": "jobs",
        "may_submit": bool(launch_tenants(request)),
        "rows": list(zip(found.rows, in_brief(found.rows, actor), strict=True)),
    }
    return render(request, "jobs/list.html", found.context | context, status=found.status)


@never_cache
@login_required
@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    return BULK.answer(request)


def _visible(actor: Actor) -> QuerySet[Job]:
    return access.visible(actor).select_related(*access.RELATED)


def _changed(count: int) -> str:
    return ngettext("%(count)d job was changed.", "%(count)d jobs were changed.", count) % {"count": count}


BULK = Bulk(
    section="jobs",
    visible=_visible,
    actions={verb: ACTIONS[verb] for verb in ("cancel", "retry-failed", "delete")},
    asked_first=ASKED_FIRST,
    changed=_changed,
    none=gettext_lazy("Select at least one job."),
)
