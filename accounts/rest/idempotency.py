"""Idempotency-Key: a POST with a key is done once, and a retry within a day gets the first answer again.

Only what was done is kept (a status below 400): a refused request changed nothing, and runs again. How long, and how
much per person, is in `accounts/once.py`.

The key's row, what the view changes and the answer are one transaction. So two at once wait for each other on the
row's unique constraint, and a process that dies half-way leaves neither a change nor a key. Views called with a key
must therefore not use `atomic(durable=True)`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from django.db import IntegrityError, InterfaceError, OperationalError, connection, transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from accounts import once
from accounts.access import Actor
from accounts.credentials import secrets
from accounts.errors import Conflict, Refusal
from accounts.models import IdempotentAnswer, User
from accounts.rest import rates
from accounts.rest.authentication import SignedInSession, TokenAuthentication
from accounts.rest.errors import as_refusal, json_response

LONGEST_WAIT = "10s"


class IdempotencyMiddleware:
    """Middleware that must be the last one, because it calls the view itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        key = request.headers.get("Idempotency-Key")
        if key is None or request.method != "POST" or not request.path.startswith("/api/v1/"):
            return None
        try:
            actor = _actor_behind(request)
            if actor is None:
                return None  # the view refuses
            view_class = getattr(view, "cls", type(view))
            # Before the transaction: inside it, the bucket would stay locked, and a rollback would undo the count.
            rates.count_request(request, actor, view_class)
            answer = _answer_kept if getattr(view_class, "asks_clusters", False) else _answer_once
            return answer(actor, key, request, lambda: view(request, *args, **kwargs))
        except (Refusal, OperationalError, InterfaceError) as error:
            refusal = as_refusal(error)
            assert refusal is not None
            return json_response(refusal)


def _answer_kept(actor: Actor, key: str, request: HttpRequest, call: Callable[[], Any]) -> HttpResponseBase:
    """Answer a view that waits for the worker (`asks_clusters`), which sees only what is committed.

    Its action changes nothing if it is done twice, so two at once may both do it; the first answer is kept.
    """
    digest = _checked_digest(actor, key, request)
    if IdempotentAnswer.objects.filter(user=actor.user, key=key).exists():
        return _replay(actor.user, key, digest)
    response: HttpResponse = call().render()
    if response.status_code < 400:
        with transaction.atomic():
            row = _claim(actor.user, key, digest)
            if row is None:
                return _replay(actor.user, key, digest)
            once.check_room(row)
            _keep(row, response)
    return response


def _answer_once(actor: Actor, key: str, request: HttpRequest, call: Callable[[], Any]) -> HttpResponseBase:
    digest = _checked_digest(actor, key, request)
    with transaction.atomic():
        row = _claim(actor.user, key, digest)
        if row is None:
            return _replay(actor.user, key, digest)
        once.check_room(row)
        response: HttpResponse = call().render()
        if response.status_code >= 500:
            transaction.set_rollback(True)
        elif response.status_code >= 400:
            row.delete()  # keep what the view wrote, such as the entry about the refusal
        else:
            _keep(row, response)
        return response


def _checked_digest(actor: Actor, key: str, request: HttpRequest) -> str:
    if not key.isprintable() or not 1 <= len(key) <= 200:
        raise Refusal(
            "idempotency_key_invalid",
            _("This Idempotency-Key is not valid."),
            _("Use 1 to 200 plain characters."),
        )
    once.forget_old(actor.user, key)
    return _digest(actor, request)


def _keep(row: IdempotentAnswer, response: HttpResponse) -> None:
    IdempotentAnswer.objects.filter(pk=row.pk).update(
        status=response.status_code, body=secrets.encrypt(response.content.decode())
    )


def _claim(user: User, key: str, digest: str) -> IdempotentAnswer | None:
    """Return the key's new row; None if it exists. Wait for another request with the key; after 10 s raise Conflict."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{LONGEST_WAIT}'")
            row = IdempotentAnswer.objects.create(user=user, key=key, request_digest=digest)
            cursor.execute("SET LOCAL lock_timeout TO DEFAULT")
            return row
    except IntegrityError:
        return None
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != "55P03":  # lock_not_available
            raise
        raise Conflict(
            "in_progress",
            _("The first request with this Idempotency-Key is still in progress."),
            _("Wait a few seconds and send it again."),
            retry_after_seconds=5,
        ) from None


def _replay(user: User, key: str, digest: str) -> HttpResponse:
    row = IdempotentAnswer.objects.get(user=user, key=key)
    if row.request_digest != digest:
        raise Conflict(
            "idempotency_key_reused",
            _("This Idempotency-Key was used for another request."),
            _("Use a new key for each new request."),
        )
    return HttpResponse(
        secrets.decrypt(row.body),
        status=row.status,
        content_type="application/json",
        headers={"Idempotency-Replayed": "true"},
    )


def _digest(actor: Actor, request: HttpRequest) -> str:
    token = actor.token.prefix if actor.token else ""
    head = f"{token}\n{request.get_full_path()}\n".encode()
    return hashlib.sha256(head + request.body).hexdigest()


def _actor_behind(request: HttpRequest) -> Actor | None:
    asking = Request(request)
    try:
        for authentication in (TokenAuthentication(), SignedInSession()):
            if found := authentication.authenticate(asking):
                return Actor(*found)
    except (Refusal, APIException):
        pass
    return None
