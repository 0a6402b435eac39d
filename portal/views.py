"""Views for the frame of all pages (choice of tenant and theme), and the pages about causes, the guides and the API."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts import preferences, tenancy
from accounts.rest.actors import actor_of
from accounts.targets import safe_target
from clusters import explain
from clusters.causes.cause import Diagnosis
from clusters.causes.themes import themes
from portal import guide as guides
from portal.schema import schema_in

METHODS = ("get", "post", "patch", "put", "delete")


class Operation(NamedTuple):
    method: str
    path: str
    summary: str
    parameters: list[str]
    body: list[str]
    answers: list[str]


@login_required
@require_POST
def choose_tenant(request: HttpRequest) -> HttpResponse:
    """Keep the choice of one tenant, or of all the person's; then return to the page they came from."""
    tenancy.choose(request, request.POST.get("tenant", ""))
    return redirect(safe_target(request))


@login_required
@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Save the theme: light, dark or the system's; then return to the page they came from."""
    user = actor_of(request).user
    preferences.choose_theme(user, request.POST.get("theme", ""))
    return preferences.remembered(redirect(safe_target(request)), user)


@login_required
@require_http_methods(["GET", "POST"])
def causes(request: HttpRequest) -> HttpResponse:
    """Show all causes of problems and their fixes, each with its code as its anchor; admins also read commands.

    A message that somebody pastes is explained, and stored nowhere: it may contain a secret.
    """
    message = request.POST.get("message", "")[: explain.LONGEST_TEXT].strip()
    context = {
        "section": "help",
        "themes": themes(),
        "shows_commands": actor_of(request).is_admin,
        "message": message,
        "longest": explain.LONGEST_TEXT,
        "found": _told(explain.diagnose_any(message)) if message else None,
    }
    return render(request, "portal/causes.html", context)


@login_required
@require_GET
def guide(request: HttpRequest, slug: str) -> HttpResponse:
    if slug not in guides.NAMES:
        raise Http404
    context = {"section": "guide", "guide": guides.guide(slug), "name": slug, "names": guides.NAMES}
    return render(request, "portal/guide.html", context)


def _told(found: Diagnosis) -> dict[str, Any]:
    return {
        "code": found.code if found.known else "",
        "sentence": explain.sentence(found.code, found.data)
        if found.known
        else _("Berth does not know this message."),
        "hint": explain.hint(found.code, found.data),
        "audience": explain.audience(found.code),
        "steps": explain.steps(found.code),
    }


@login_required
@require_GET
def api_docs(request: HttpRequest) -> HttpResponse:
    address = request.build_absolute_uri("/api/v1/workspaces/")
    example = f'curl -H "Authorization: Bearer $BERTH_TOKEN" {address}'
    context = {"section": "api", "groups": operations(), "example": example}
    return render(request, "portal/api_docs.html", context)


@cache
def operations() -> dict[str, list[Operation]]:
    """Operations of the API, grouped by the first word of their address."""
    schema = schema_in(settings.LANGUAGE_CODE)
    groups: dict[str, list[Operation]] = {}
    for path, methods in schema["paths"].items():
        if not path.startswith("/api/v1/"):
            continue
        for method in METHODS:
            if method in methods:
                group = path.removeprefix("/api/v1/").split("/")[0]
                groups.setdefault(group, []).append(_operation(schema, path, method, methods[method]))
    return groups


def _operation(schema: dict[str, Any], path: str, method: str, told: dict[str, Any]) -> Operation:
    body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    fields = _resolved(schema, body)
    required = set(fields.get("required", ()))
    return Operation(
        method=method.upper(),
        path=path,
        summary=told.get("summary", ""),
        parameters=[entry["name"] for entry in told.get("parameters", ()) if entry["in"] == "query"],
        body=[name if name in required else f"{name}?" for name in fields.get("properties", ())],
        answers=sorted(told["responses"]),
    )


def _resolved(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference into the schema's components."""
    name = part.get("$ref", "").rpartition("/")[2]
    resolved: dict[str, Any] = schema["components"]["schemas"][name] if name else part
    return resolved
