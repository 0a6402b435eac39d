"""Tab with the parts of a job: parameters, state and newest values, in any order; and how the rest is stopped."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from accounts.rest.actors import actor_of
from jobs import access, sweeps
from jobs.models import SETTLED, Part
from jobs.runs import lifecycle

from .views_job import job_page, what_may

ROWS_PER_PAGE = 100


class Column(NamedTuple):
    """Column of the table. `turns_to`: the order that its head leads to; `order`: the present one."""

    label: str
    turns_to: str
    order: str
    is_number: bool = True


@never_cache
@login_required
@require_GET
def parts(request: HttpRequest, id: UUID) -> HttpResponse:
    job = access.get(actor_of(request), id)
    every = list(job.parts.all())
    sort = request.GET.get("sort", "index")
    try:
        ordered = sweeps.in_order(every, sort)
    except ValueError:  # an address that was cut or made up
        return redirect("job-parts", id=id)
    parameters, metrics = sweeps.names_in(every, "parameters"), sweeps.names_in(every, "metrics")
    page = Paginator(ordered, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "page": page,
        "rows": [row_of(part, parameters, metrics) for part in page.object_list],
        "columns": [
            column(_("Part"), "index", sort),
            *(column(name, f"parameters.{name}", sort) for name in parameters),
            column(_("Status"), "phase", sort, is_number=False),
            column(_("Attempts"), "attempts", sort),
            *(column(name, f"metrics.{name}", sort) for name in metrics),
        ],
        "sort": sort,
        "is_under_way": any(part.phase not in SETTLED for part in every),
    }
    return job_page(request, job, "parts", **context)


def column(label: str, name: str, sort: str, *, is_number: bool = True) -> Column:
    """Return a column's head: pressed once it sorts upwards, pressed again downwards."""
    order = {name: "ascending", f"-{name}": "descending"}.get(sort, "")
    return Column(label, f"-{name}" if order == "ascending" else name, order, is_number)


def row_of(part: Part, parameters: list[str], metrics: list[str]) -> dict[str, Any]:
    return {
        "part": part,
        "parameters": [part.parameters.get(name) for name in parameters],
        "metrics": [part.metrics.get(name) for name in metrics],
        "is_over": part.phase in SETTLED,
        "percent": None if part.progress is None else round(part.progress * 100),
    }


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def stop_rest(request: HttpRequest, id: UUID) -> HttpResponse:
    """Ask which parts end, then end them."""
    actor = actor_of(request)
    job = access.get(actor, id)
    access.require_manage(actor, job)
    keep = sorted({int(text) for text in request.POST.getlist("keep") if text.isascii() and text.isdigit()})
    if request.method == "GET" or not what_may(actor, job)["cancel"]:
        return redirect("job-parts", id=id)
    if "sure" in request.POST:
        lifecycle.stop_rest(actor, job, keep[: sweeps.MOST_PARTS])
        return redirect("job-parts", id=id)
    rest = job.parts.exclude(phase__in=SETTLED)
    context = {
        "section": "jobs",
        "job": job,
        "kept": rest.filter(index__in=keep),
        "ended": rest.exclude(index__in=keep).count(),
    }
    return render(request, "jobs/stop_rest.html", context)
