"""Metrics tab of a workspace, the gauges on its page, and the small lines of GPU use on the first page."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from accounts.rest.actors import actor_of
from monitoring import sparks
from monitoring.figures.series import DEFAULT, of_workspace
from monitoring.gauges import of as gauges_of
from monitoring.panels import panels
from workspaces import access
from workspaces.models import Phase, Workspace
from workspaces.pages.views_workspace import workspace_page

# Choices of the page; the API has more.
CHOICES = {
    "15m": _("15 minutes"),
    "1h": _("1 hour"),
    "6h": _("6 hours"),
    "24h": _("1 day"),
    "run": _("this run"),
}
LENGTHS = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(days=1),
}


@never_cache
@login_required
@require_GET
def metrics(request: HttpRequest, id: UUID) -> HttpResponse:
    workspace = access.get(actor_of(request), id)
    asked = request.GET.get("window", "")
    window = asked if asked in CHOICES else fitting(workspace, timezone.now())
    figures = of_workspace(workspace, window)
    more: Any = {
        "figures": figures,
        "panels": panels(workspace, figures),
        "window": window,
        "windows": CHOICES,
    }
    return workspace_page(request, workspace, "metrics", **more)


def fitting(workspace: Workspace, now: datetime) -> str:
    """Return the shortest choice that shows the whole run; “this run” for one that is over, or older than a day."""
    if workspace.started_at is None:
        return DEFAULT
    age = now - workspace.started_at
    is_over = workspace.phase not in (Phase.STARTING, Phase.READY, Phase.STOPPING)
    return "run" if is_over else next((name for name, length in LENGTHS.items() if age <= length), "run")


@never_cache
@login_required
@require_GET
def gauges(request: HttpRequest, id: UUID) -> HttpResponse:
    """Render what a workspace uses now, as a part of its page."""
    workspace = access.get(actor_of(request), id)
    context = {"workspace": workspace, "gauges": gauges_of(workspace)}
    return render(request, "monitoring/gauges.html", context)


@never_cache
@login_required
@require_GET
def sparklines(request: HttpRequest) -> HttpResponse:
    """Render the lines for the cards of a page, as parts that replace them."""
    lines = sparks.of(actor_of(request), request.GET.getlist("id"))
    return render(request, "monitoring/sparklines.html", {"lines": lines})
