"""50 of 10,000 workspaces: the page, the API's list, the admin's lists; each asked for one after the other"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from statistics import median, quantiles

from tests.bench import Figure
from tests.bench.helpers.parts import cpu_seconds, installation, manage, serving

RUNS = 3
TIMES = 30
WORKSPACES = 10_000
SEED = f"""
from tests.bench.crowd import make_crowd, session_of
from tests.cast import make_cast
cast = make_cast()
make_crowd(cast, tenants=20, people=50, workspaces={WORKSPACES})
cast.admin.user.is_superuser = True
cast.admin.user.save()
from django.db import connection
connection.cursor().execute("ANALYZE")
from accounts.models import User
from accounts.access import Actor
people = (User.objects.get(username="person-0-1"), cast.alice.user, cast.victor.user, cast.admin.user)
print(*(session_of(user) for user in people))
"""
PEOPLE = ("a member of one tenant", "a member of all", "a viewer of all", "an admin")
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
        "page, the last": "/?show=everyone&page=200",
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
    with ExitStack() as stack:
        _folder, environ = stack.enter_context(installation())
        web, port = stack.enter_context(serving(environ))
        sessions = dict(
            zip(PEOPLE, manage(environ, "shell", "-c", SEED).split()[-len(PEOPLE) :], strict=True)
        )
        for who, asked in ASKED.items():
            browser = Browser(web, port, sessions[who])
            for what, path in asked.items():
                yield browser.ask_often(f"{who}: {what}", browser.deep() if path == "deep" else path)


class Browser:
    """Browser with one connection that stays open."""

    def __init__(self, web: int, port: int, session: str) -> None:
        self._web = web
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

    def ask_often(self, what: str, path: str) -> Figure:
        """Return the p95 of the worst run."""
        self.get(path)
        cpu = cpu_seconds(self._web)
        runs = [sorted(self._ask(path) for _ in range(TIMES)) for _ in range(RUNS)]
        p95s = [quantiles(run, n=20)[18] for run in runs]
        cpu = (cpu_seconds(self._web) - cpu) * 1000 / RUNS / TIMES
        said = ", ".join(f"{p95:.1f}" for p95 in p95s)
        beside = f"p50 {median(runs[-1]):.1f}; CPU of web {cpu:.1f}"
        return Figure(f"{what}: p95", max(p95s), f"ms, the worst of {said}; {beside}")

    def _ask(self, path: str) -> float:
        began = time.monotonic()
        self.get(path)
        return (time.monotonic() - began) * 1000
