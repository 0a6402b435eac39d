"""Help page with all causes of problems and their fixes, each with its code as its anchor."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from clusters.causes.themes import themes


@login_required
@require_GET
def causes(request: HttpRequest) -> HttpResponse:
    return render(request, "portal/causes.html", {"section": "help", "themes": themes()})
