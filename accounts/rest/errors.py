"""Refusals of the API in one shape: `{"error": {code, message, hint, fields}}`."""

from __future__ import annotations

from itertools import islice
from typing import Any

import structlog
from django.core.exceptions import DisallowedHost, PermissionDenied
from django.db import InterfaceError, OperationalError, ProgrammingError
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views import defaults
from psycopg.errors import UndefinedColumn, UndefinedTable
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import not_there
from accounts.errors import MOST_FAULTY_FIELDS, NotAllowed, NotSignedIn, NotThere, Refusal
from accounts.models import User
from accounts.rest.actors import actor_of
from accounts.rest.rates import TOO_OFTEN
from accounts.trail import audit


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """Handle an exception for DRF. Return None if it is unforeseen: then it is logged, and `server_error` answers."""
    refusal = as_refusal(error)
    if refusal is None:
        return None
    _record(refusal, context.get("request"))
    return Response(body_of(refusal), status=refusal.status, headers=headers_of(refusal))


def as_refusal(error: Exception) -> Refusal | None:
    match error:
        case NotThere() | Http404() | exceptions.NotFound():
            return not_there()
        case Refusal():
            return error
        case PermissionDenied():
            return NotAllowed(
                "forbidden", _("You are not allowed to do this."), _("Ask an owner of the tenant.")
            )
        case exceptions.APIException():
            return _of_framework(error)
        case OperationalError() | InterfaceError():
            return _with_status(
                503,
                "database_away",
                _("The database cannot handle this request right now."),
                _("Nothing was changed. Try again in a few seconds."),
                retry_after_seconds=5,
            )
        case ProgrammingError() if isinstance(error.__cause__, UndefinedTable | UndefinedColumn):
            return _with_status(
                503,
                "being_updated",
                _("Berth is being updated."),
                _("Nothing was changed. Berth will be back in a minute or two."),
                retry_after_seconds=15,
            )
        case _:
            return None


def body_of(refusal: Refusal) -> dict[str, Any]:
    return {
        "error": {
            "code": refusal.code,
            "message": str(refusal.message),
            "hint": str(refusal.hint),
            "fields": dict(islice(refusal.fields.items(), MOST_FAULTY_FIELDS)),
        }
    }


def headers_of(refusal: Refusal) -> dict[str, str]:
    headers = {}
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if refusal.retry_after_seconds is not None:
        headers["Retry-After"] = str(refusal.retry_after_seconds)
    return headers


def json_response(refusal: Refusal) -> HttpResponse:
    """Return the same bytes as a view would, for refusals before or after a view."""
    return HttpResponse(
        JSONRenderer().render(body_of(refusal)),
        status=refusal.status,
        headers=headers_of(refusal),
        content_type="application/json",
    )


# --- Django's error handlers (portal/urls.py): JSON under /api/, pages elsewhere


def is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not is_api(request):
        return defaults.bad_request(request, exception)
    if isinstance(exception, DisallowedHost):
        # Not 400: the content is not wrong, so a node's agent keeps its report and tries again.
        return json_response(
            _with_status(
                421,
                "wrong_host",
                _("Berth does not serve this host name."),
                _("Use Berth's own address, or ask an operator to add the name to BERTH_ALLOWED_HOSTS."),
            )
        )
    return json_response(
        _with_status(400, "bad_request", _("This request cannot be read."), _("Check its form."))
    )


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return json_response(not_there()) if is_api(request) else defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    if not is_api(request):
        return defaults.server_error(request)
    request_id = structlog.contextvars.get_contextvars().get("request_id", "")
    hint = _("Try again. If this continues, tell an admin this number: %(id)s.") % {"id": request_id}
    return json_response(
        _with_status(500, "internal", _("Something went wrong in Berth. The error was logged."), hint)
    )


def _of_framework(error: exceptions.APIException) -> Refusal:
    match error:
        case exceptions.ValidationError():
            return Refusal(
                "invalid",
                _("Some of what you sent is not valid."),
                _("See “fields” for what to change."),
                fields=_flatten(error.detail),
            )
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return NotSignedIn(
                "not_signed_in", _("You are not signed in."), _("Send a token, or sign in and try again.")
            )
        case exceptions.PermissionDenied():
            code = str(getattr(error.detail, "code", "forbidden"))
            return NotAllowed(
                "forbidden" if code == "permission_denied" else code,
                str(error.detail),
                _("Reload the page and try again.")
                if code == "csrf_failed"
                else _("Ask an owner of the tenant."),
            )
        case exceptions.ParseError():
            return Refusal("not_json", _("The body is not valid JSON."), _("Send one JSON object."))
        case exceptions.MethodNotAllowed():
            return _with_status(
                405,
                "method_not_allowed",
                str(error.detail),
                _("The Allow header names the methods that work."),
            )
        case _:
            code = str(getattr(error.detail, "code", "refused"))
            return _with_status(
                error.status_code, code, str(error.detail), _("Send and accept application/json.")
            )


def _with_status(
    status: int, code: str, message: str, hint: str, *, retry_after_seconds: int | None = None
) -> Refusal:
    refusal = Refusal(code, message, hint, retry_after_seconds=retry_after_seconds)
    refusal.status = status
    return refusal


def _flatten(detail: Any, name: str = "") -> dict[str, list[str]]:
    """Turn DRF's nested lists and dicts of errors into one flat dict: `volumes.0.path` → texts."""
    if isinstance(detail, dict):
        pairs = detail.items()
    elif isinstance(detail, list) and any(isinstance(entry, dict | list) for entry in detail):
        pairs = {str(index): entry for index, entry in enumerate(detail)}.items()
    else:
        texts = detail if isinstance(detail, list) else [detail]
        return {name or "non_field_errors": [str(text) for text in texts]} if texts else {}
    flat: dict[str, list[str]] = {}
    for key, entry in pairs:
        flat |= _flatten(entry, f"{name}.{key}" if name else str(key))
    return flat


def _record(refusal: Refusal, request: Request | None) -> None:
    if request is None or refusal.status not in audit.RECORDED or refusal.code == TOO_OFTEN:
        return  # reading the user might fail again; a flood of requests must not flood the trail
    if isinstance(request.user, User):
        audit.record_refusal(request._request, actor_of(request), refusal)
