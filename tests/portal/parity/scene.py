"""A Berth that answers over HTTP, and people at their terminals."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
from django.urls import resolve
from typer.testing import CliRunner

from accounts.access import Actor
from accounts.credentials import tokens
from accounts.models import Scope
from berth.cli.main import app
from clusters.api import Api
from tests.cast import Cast


class Person:
    """A person with a token of every scope that they may have."""

    def __init__(self, scene: Scene, actor: Actor) -> None:
        self._scene = scene
        scopes = [scope for scope in Scope if scope != Scope.ADMIN or actor.user.is_staff]
        self._token = tokens.issue(actor.user, "terminal", scopes)[1]

    def berth(self, *arguments: str) -> bytes:
        """Run a command of `berth`, which must succeed. Return what it printed."""
        environ = {"BERTH_URL": self._scene.address, "BERTH_TOKEN": self._token}
        result = CliRunner().invoke(app, arguments, env=environ)
        assert result.exit_code == 0, (arguments, result.output, result.exception)
        return result.stdout_bytes

    def api(self, request: str, body: Any = None) -> Any:
        """Send a request by `berth api`. Return the answer's JSON; None if it is empty."""
        printed = self.download(request, body)
        return json.loads(printed) if printed else None

    def download(self, request: str, body: Any = None) -> bytes:
        """Send a request by `berth api`. Return the answer as it is."""
        method, _space, path = request.partition(" ")
        printed = self.berth("api", method, path, *([] if body is None else [json.dumps(body)]))
        self._scene.sent(method, path)
        return printed

    def get(self, path: str) -> Any:
        return self.api(f"GET {path}")

    def list(self, path: str) -> list[Any]:
        """Return the first page of a list."""
        found: list[Any] = self.get(path)["results"]
        return found

    def acts(self, kind: str, action: str, *rows: Any) -> None:
        """Do an action of an admin's list to these rows, all of which must allow it."""
        body = {"ids": [str(row) for row in rows], "confirm": True}
        answer = self.api(f"POST admin-actions/{kind}/{action}/", body)
        assert all(one["done"] for one in answer["results"]), answer

    def upload(self, request: str, data: bytes) -> None:
        """Send bytes, as `curl --data-binary` does."""
        method, _space, path = request.partition(" ")
        url, headers = f"{self._scene.address}/api/v1/{path}", {"Authorization": f"Bearer {self._token}"}
        httpx.request(method, url, content=data, headers=headers).raise_for_status()
        self._scene.sent(method, path)


class Scene:
    """The cast, before a Berth at `address`. `cluster`: for examples on one, with the rights of its admin."""

    def __init__(self, cast: Cast, address: str, cluster: Api | None = None) -> None:
        self.cast, self.address = cast, address
        self.cluster: Any = cluster
        self._people: dict[str, Person] = {}
        self._sent: set[str] = set()

    def __getattr__(self, name: str) -> Person:
        """Return alice, bob, or whoever of the cast it is."""
        if name not in self._people:
            self._people[name] = Person(self, getattr(self.cast, name))
        return self._people[name]

    def sent(self, method: str, path: str) -> None:
        path = re.sub(r"\?.*", "", path)
        route = resolve(f"/api/v1/{path}").route.removeprefix("api/v1/")
        self._sent |= {f"{method} {path}", f"{method} {route}"}

    def has_sent(self, request: str) -> bool:
        return request in self._sent
