"""Middleware: client address for the audit trail, request id for the logs, preferences, pages for refusals."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import structlog
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.db import InterfaceError, OperationalError, ProgrammingError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve
from django.utils import translation
from django.utils.functional import SimpleLazyObject

from accounts import addresses, preferences
from accounts.access import Actor
from accounts.errors import NotSignedIn, Refusal
from accounts.models import User
from accounts.rest.errors import as_refusal, headers_of, is_api, json_response
from accounts.trail.audit import client_address, record_refusal

GetResponse = Callable[[HttpRequest], HttpResponseBase]
# ProgrammingError is a missing migration or a bug of ours; `as_refusal` distinguishes them.
AWAY = (OperationalError, InterfaceError, ProgrammingError)
logger = logging.getLogger(__name__)


class RequestContext:
    """Middleware that must be the first. Behind a proxy, the web server decides which address to trust."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = uuid.uuid4().hex
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        client_address.set(_address_of(request))
        response = self.get_response(request)
        response["X-Request-ID"] = request_id
        if is_api(request):
            response.headers.setdefault("Cache-Control", "no-store")  # an answer may open a workspace
            if hasattr(request, "api_token"):
                response["Berth-Version"] = (
                    settings.VERSION
                )  # clients compare it with theirs; strangers get none
        return response


class PersonalPreferences:
    """Middleware for the person's language and time zone. It leaves an unavailable database to the view."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with preferences.applied(request, _person_behind(request)):
            response = self.get_response(request)
            response.headers.setdefault("Content-Language", translation.get_language())
            return response


class RefusalPages:
    """Middleware that shows a refusal or an unavailable database as a page: what happened, what to do.

    A person who opens the address of a form, such as again after its error, gets the page above it.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if response.status_code == 405 and request.method == "GET" and _is_visit(request):
            return redirect(page_above(request.path))
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        refusal = as_refusal(exception) if isinstance(exception, (Refusal, *AWAY)) else None
        if refusal is None:
            return None
        if is_api(request):
            return json_response(refusal)
        if refusal.status == 503:
            logger.warning("answered with 503: %s", refusal.code)
            # Rendered without the request: reading its user would fail again.
            context = {"refusal": refusal, "is_form": request.method not in ("GET", "HEAD")}
            page = render_to_string("503.html", context)
            return HttpResponse(page, status=503, headers=headers_of(refusal))
        if isinstance(refusal, NotSignedIn):
            return redirect_to_login(request.get_full_path())
        if isinstance(request.user, User):
            record_refusal(request, Actor(request.user), refusal)
        answer = render(request, "refusal.html", {"refusal": refusal}, status=refusal.status)
        for name, value in headers_of(refusal).items():
            answer[name] = value
        return answer


def _is_visit(request: HttpRequest) -> bool:
    """Return True for a browser that opens a page. Scripts get the 405."""
    return not is_api(request) and "text/html" in request.headers.get("Accept", "")


def page_above(path: str) -> str:
    """Return the nearest address above this one that exists; one that takes only forms leads on to the next."""
    while path != "/":
        path = path.rstrip("/").rpartition("/")[0] + "/"
        with suppress(Resolver404):
            resolve(path)
            break
    return path


def _person_behind(request: HttpRequest) -> User | None:
    try:
        return request.user if isinstance(request.user, User) else None
    except AWAY as error:
        request.user = _unknown(error)
        return None


def _unknown(error: Exception) -> Any:
    """Return a user that raises the error at once: waiting for the database a second time helps nobody."""

    def fail() -> User:
        raise error

    return SimpleLazyObject(fail)


def _address_of(request: HttpRequest) -> str | None:
    try:
        return addresses.plain(request.META.get("REMOTE_ADDR", ""))
    except ValueError:  # a unix socket has no address
        return None
