"""Browsers and scripts of people."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client
from rest_framework.test import APIClient

from accounts.access import Actor
from accounts.credentials import tokens
from accounts.models import Scope, Tenant

BOTH = (Scope.READ, Scope.WORKSPACES)
EVERY_SCOPE = [Scope.READ, Scope.WORKSPACES, Scope.JOBS, Scope.VOLUMES]


def api(
    actor: Actor,
    *scopes: str,
    tenant: Tenant | None = None,
    raise_errors: bool = True,
) -> APIClient:
    """Client of a script with the person's token: with the named scopes, or with all that they may have."""
    admin = [Scope.ADMIN] if actor.user.is_staff else []
    _token, secret = tokens.issue(actor.user, "script", scopes or [*EVERY_SCOPE, *admin], tenant)
    client = APIClient(raise_request_exception=raise_errors)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


def browser(actor: Actor, *, checks_csrf: bool = False) -> Client:
    client = Client(enforce_csrf_checks=checks_csrf)
    client.force_login(actor.user)
    return client


def ask(client: Client, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """Send a JSON request to the API, as any client would."""
    text = "" if body is None else json.dumps(body)
    return client.generic(method, f"/api/v1/{path}", text, content_type="application/json", headers=headers)


def script(actor: Actor, *scopes: Scope, tenant: Tenant | None = None) -> Client:
    """Return a client with a token of the actor, which reads and writes workspaces unless scopes say otherwise.

    Staff have the scope `admin` too: without it, their token has the rights of their memberships alone.
    """
    admin = [Scope.ADMIN] if actor.user.is_staff else []
    _token, secret = tokens.issue(actor.user, "test", [*(scopes or BOTH), *admin], tenant, 1)
    return Client(headers={"Authorization": f"Bearer {secret}"})
