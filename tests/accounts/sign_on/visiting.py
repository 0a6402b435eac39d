"""Tools for tests of sign-on: a browser at Berth and at a university, and what both show."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urljoin

import requests
from django.test import Client

from accounts.models import AuditEntry, Membership

CALLBACK = "/sign-in/oidc/callback/"
GROUPS = "vision-team=demo:member, vision-leads=demo:owner, readers=demo:viewer, berth-admins=admin"


class Visitor:
    """A browser that is open at Berth and at the university."""

    def __init__(self, client: Client | None = None) -> None:
        self.berth = client or Client()
        self.there = requests.Session()

    def to_the_provider(self, target: str = "/profile/") -> str:
        return str(self.berth.get("/sign-in/oidc/", {"next": target})["Location"])

    def at_the_provider(self, address: str, **form: str) -> str:
        """Sign in at the provider. Return the address of Berth to which it sends the browser back."""
        page = self.there.get(address)
        answer = self.there.post(page.url, data=form, allow_redirects=False)
        while (location := answer.headers["Location"]).startswith(("http://127.", "/")):
            answer = self.there.get(urljoin(answer.url, location), allow_redirects=False)
        assert location.startswith(f"http://testserver{CALLBACK}?")
        return location

    def back(self, address: str) -> Any:
        return self.berth.get(address)

    def sign_in(self, who: str, target: str = "/profile/") -> Any:
        return self.back(self.at_the_provider(self.to_the_provider(target), who=who))

    def is_in(self) -> bool:
        return self.berth.get("/api/v1/me/").status_code == 200


def said(answer: Any) -> str:
    """The refusal on the sign-in page."""
    found = re.search(r'role="alert">.*?<strong>(.*?)</strong>', answer.text, re.DOTALL)
    assert found, answer.text
    return found[1].replace("&#x27;", "'")


def roles_of(name: str) -> dict[str, str]:
    found = Membership.objects.filter(user__username=name)
    return dict(found.values_list("tenant__slug", "role"))


def trail(action: str) -> list[Any]:
    """Return (actor, outcome, data without the target's name) of the entries with this action."""
    found = AuditEntry.objects.filter(action=action).order_by("id")
    return [
        (entry.actor_name, entry.outcome, {k: v for k, v in entry.data.items() if k != "name"})
        for entry in found
    ]
