"""The audit trail as a page of sentences, for owners and admins."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from accounts.models import AuditEntry
from accounts.rest.actors import actor_of
from accounts.rest.pagination import KeysetPagination
from accounts.trail import trail
from accounts.trail.trail_words import KINDS, sentence


class Newest:
    keyset = trail.KEYSET


@never_cache
@login_required
@require_GET
def audit_trail(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    entries = trail.visible(actor)
    found = trail.TrailFilter(request.GET, entries)
    is_valid = found.is_valid()
    pages = KeysetPagination()
    try:
        rows = pages.paginate_queryset(found.qs if is_valid else entries.none(), Request(request), Newest)
    except ValidationError:  # an address that was cut or made up
        return redirect("audit")
    asked = {name: value for name, value in request.GET.items() if name in found.filters and value}
    context = {
        "section": "audit",
        "form": found.form,
        "asked": asked,
        "tenants": trail.visible_in(actor).order_by("name"),
        "kinds": KINDS,
        "outcomes": AuditEntry.Outcome.choices,
        "lines": [(row, sentence(row)) for row in rows],
        "following": pages.following,
        "is_later": "cursor" in request.GET,
        "export": f"{reverse('api-v1:audit')}?{urlencode({'format': 'csv', **asked})}",
    }
    return render(request, "accounts/audit.html", context, status=200 if is_valid else 422)
