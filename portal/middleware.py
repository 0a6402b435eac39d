"""What every request carries: the client's address for the audit trail, an id for the logs; and pages for refusals."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from django.contrib.auth.views import redirect_to_login
from django.db import InterfaceError, OperationalError, ProgrammingError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.functional import SimpleLazyObject

from accounts import addresses, preferences
from accounts.access import Actor
from accounts.audit import client_address, record_refusal
from accounts.errors import NotSignedIn, Refusal
from accounts.models import User
from accounts.rest.errors import as_refusal, headers_of, is_api, json_response

GetResponse = Callable[[HttpRequest], HttpResponseBase]
# Of these, the last is a database that is not migrated yet, or a fault of ours: `as_refusal` knows which.
AWAY = (OperationalError, InterfaceError, ProgrammingError)
logger = logging.getLogger(__name__)


class RequestContext:
    """First in MIDDLEWARE. Behind a proxy the address is the one that the web server was told to trust."""

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
            response.headers.setdefault("Cache-Control", "no-store")  # what opens a workspace is among it
        return response


class PersonalPreferences:
    """The signed-in person's language and time zone. A database that is away is for the view to say, not for this."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with preferences.applied(request, _person_behind(request)):
            response = self.get_response(request)
            response.headers.setdefault("Content-Language", translation.get_language())
            return response


class RefusalPages:
    """A use case that refuses, or a database that is away, is a page with what happened and what to do."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        refusal = as_refusal(exception) if isinstance(exception, (Refusal, *AWAY)) else None
        if refusal is None:
            return None
        if is_api(request):
            return json_response(refusal)
        if refusal.status == 503:
            logger.warning("answered with 503: %s", refusal.code)
            # Rendered without the request: whatever asks who is signed in would fail again.
            context = {"refusal": refusal, "is_form": request.method not in ("GET", "HEAD")}
            page = render_to_string("503.html", context)
            return HttpResponse(page, status=503, headers=headers_of(refusal))
        if isinstance(refusal, NotSignedIn):
            return redirect_to_login(request.get_full_path())
        if isinstance(request.user, User):
            record_refusal(request, Actor(request.user), refusal)
        return render(request, "refusal.html", {"refusal": refusal}, status=refusal.status)


def _person_behind(request: HttpRequest) -> User | None:
    try:
        return request.user if isinstance(request.user, User) else None
    except AWAY as error:
        request.user = _unknown(error)
        return None


def _unknown(error: Exception) -> Any:
    """Whoever asks again who it is hears the same at once: waiting for the database a second time helps nobody."""

    def fail() -> User:
        raise error

    return SimpleLazyObject(fail)


def _address_of(request: HttpRequest) -> str | None:
    try:
        return addresses.plain(request.META.get("REMOTE_ADDR", ""))
    except ValueError:  # a unix socket has no address
        return None
