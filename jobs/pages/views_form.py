"""Page with the form of a new job, and the live answer beside it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import Actor
from jobs import access, programs, sweeps
from jobs.models import Job
from jobs.submit import submit
from workloads.pages import prefill
from workloads.pages.form_pages import Beginning, FormPage
from workloads.pages.lists import uuids

from .forms import JobForm

COPIED = {"again": "job", "workspace": "workspace"}


@never_cache
@login_required
@sensitive_post_parameters("env", "secret_env", "script")
@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    return PAGE.respond(request)


@never_cache
@login_required
@sensitive_post_parameters("env", "secret_env", "script")
@require_POST
def answer(request: HttpRequest) -> HttpResponse:
    return PAGE.answer(request)


def begin(actor: Actor, link: Mapping[str, str]) -> Beginning:
    """Fill the form in from another job, or from the workspace in which the program was tried."""
    copies, source, notes = prefill.copied(actor, link, COPIED)
    first = waits_for(actor, link)
    if source is None:
        return Beginning({"name": "train"} | first, notes, is_copy=bool(first))
    values = first | prefill.settings_of(source) | {"name": source.row.name}
    if source.left_out:
        notes.append(
            _("Volumes that you cannot mount were left out: %(names)s.")
            % {"names": ", ".join(source.left_out)}
        )
    if isinstance(source.row, Job):
        values |= own_values(source.row, source.is_own)
    return Beginning(values, notes, is_copy=True, context={"like": source.row, "copies": copies})


def waits_for(actor: Actor, link: Mapping[str, str]) -> dict[str, Any]:
    """Return the jobs of the link that the new one is to wait for, and their tenant."""
    named = uuids(link.get("after", "").split(","))
    jobs = list(access.visible(actor).filter(pk__in=named, deleted_at=None).select_related("tenant"))
    return {"after": [str(job.pk) for job in jobs], "tenant": jobs[0].tenant.slug} if jobs else {}


def own_values(row: Job, is_own: bool) -> dict[str, Any]:
    """First values that jobs alone have; the program for the owner alone."""
    values: dict[str, Any] = {
        "completions": 1 if row.sweep is not None else row.completions,
        "parallelism": row.parallelism,
        "sweep": "" if row.sweep is None else sweeps.as_text(row.sweep),
        "retries": row.retries,
        "final_exit_codes": ", ".join(map(str, row.final_exit_codes)),
        "ttl_hours": row.ttl_hours,
        "max_runtime_minutes": row.max_runtime_minutes or "",
        "notify": row.notify,
        "framework": row.framework,
        "nodes": row.nodes,
        "processes_per_node": row.processes_per_node,
        "checkpoints": str(row.checkpoints or ""),
        "writes": str(row.writes_id or ""),
        "metrics_port": row.metrics_port,
        "metrics_path": row.metrics_path,
    }
    return values | (program_values(row) if is_own else {})


def program_values(row: Job) -> dict[str, Any]:
    if notebook := programs.notebook_of(row.command):
        return {"program": "notebook", "notebook": notebook}
    if row.command:
        return {"program": "command", "command": shlex.join(row.command)}
    return {"program": "script", "script": row.secret.clear_script()}


PAGE = FormPage(
    form=JobForm,
    section="jobs",
    template="jobs/new.html",
    same="jobs/_same.html",
    no_tenant="jobs/no_tenant.html",
    begin=begin,
    submit=lambda actor, form: str(submit(actor, form.spec()).pk),
    done="job",
)
