"""Scripts and browsers that ask the API."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from accounts.access import Actor
from accounts.credentials import tokens
from accounts.models import Scope, Tenant

BOTH = (Scope.READ, Scope.WORKSPACES)


def script(actor: Actor, *scopes: Scope, tenant: Tenant | None = None) -> Client:
    """Return a client with a token of the actor, which reads and writes workspaces unless scopes say otherwise."""
    _token, secret = tokens.issue(actor.user, "test", list(scopes or BOTH), tenant, 1)
    return Client(headers={"Authorization": f"Bearer {secret}"})


def ask(client: Client, method: str, path: str, body: Any = None, **headers: str) -> Any:
    text = "" if body is None else json.dumps(body)
    return client.generic(method, f"/api/v1/{path}", text, content_type="application/json", headers=headers)
