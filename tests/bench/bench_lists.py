"""50 of 10,000 workspaces: the page, the API's list, the admin's lists; each asked for one after the other"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from http.client import HTTPConnection

from tests.bench import Figure
from tests.bench.helpers.parts import ask_often, call, installation, serving

WORKSPACES = 10_000
API = "/api/v1/workspaces/"
ADMIN = "/admin/workspaces/workspace/"
ASKED: dict[str, dict[str, str]] = {
    "a member of one tenant": {
        "page": "/",
        "page, everybody's": "/?show=everyone",
        "API": API,
        "API, deep": "deep",
        "API, phase and name": f"{API}?phase=ready&search=run-77",
    },
    "a member of all": {
        "page": "/",
        "page, everybody's": "/?show=everyone",
        "page, the oldest first": "/?show=everyone&sort=created_at",
        "API": API,
        "API, deep": "deep",
        "API, those that wait": f"{API}?phase=waiting",
        "API, search": f"{API}?search=run-77",
        "API, one tenant": f"{API}?tenant=team-7",
    },
    "a viewer of all": {"page, everybody's": "/?show=everyone", "API": API, "API, deep": "deep"},
    "an admin": {
        "page, everybody's": "/?show=everyone",
        "API": API,
        "API, deep": "deep",
        "API, search": f"{API}?search=run-77",
        "admin's list of workspaces": ADMIN,
        "the same, those that are ready": f"{ADMIN}?phase__exact=ready",
        "the same, search": f"{ADMIN}?q=run-77",
        "admin's list of claims": "/admin/quotas/claim/",
    },
}


def measure() -> Iterator[Figure]:
    with installation() as (_folder, environ), serving(environ) as (web, port):
        sessions = call(environ, "seeds.lists", WORKSPACES)
        for (who, asked), session in zip(ASKED.items(), sessions, strict=True):
            browser = Browser(port, session)
            for what, path in asked.items():
                address = browser.deep() if path == "deep" else path
                yield ask_often(f"{who}: {what}", web, partial(browser.get, address))


class Browser:
    """Browser with one connection that stays open."""

    def __init__(self, port: int, session: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", port)
        self._headers = {"Cookie": f"berth_session={session}", "Accept-Encoding": "identity"}

    def get(self, path: str) -> bytes:
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body[:500])
        return body

    def deep(self) -> str:
        """Return the path of the page of 50 that begins halfway through the list."""
        pages, path = list[str](), f"{API}?limit=500"
        while path:
            pages.append(path)
            path = json.loads(self.get(path))["next"]
        return pages[len(pages) // 2].replace("limit=500", "limit=50")
