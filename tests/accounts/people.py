"""People of the tests, and their clients."""

import json
from dataclasses import dataclass
from typing import Any

from django.test import Client
from rest_framework.test import APIClient

from accounts.access import Actor
from accounts.credentials import tokens
from accounts.models import Scope, Tenant
from tests import cast

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFwvZMfyHv1ftePWpJmr5erLJIrm9vAIU4fJoFbRDvX9 alice@laptop"
EVERY_SCOPE = [Scope.READ, Scope.WORKSPACES, Scope.JOBS, Scope.VOLUMES]


@dataclass(frozen=True)
class People:
    demo: Tenant
    second: Tenant
    alice: Actor
    bob: Actor
    victor: Actor
    carol: Actor
    admin: Actor


def make_people() -> People:
    """alice owns demo, bob is a member, victor a viewer; carol is of second; admin is staff."""
    (demo, second), people = cast.make_people()
    return People(demo, second, *map(Actor, people))


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
    text = json.dumps({} if body is None else body)
    return client.generic(method, f"/api/v1/{path}", text, content_type="application/json", headers=headers)
