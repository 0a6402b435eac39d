"""Contents of files through the web process: who gets them, what passes, and when a transfer ends."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from django.conf import settings
from django.db import connections
from django.test import Client

from accounts import members
from accounts.access import Actor
from accounts.credentials import tokens
from accounts.credentials.secrets import encrypt
from storage.files import door, sessions
from storage.models import FilesSession, Volume
from tests.cast import Cast
from tests.shared.clients import EVERY_SCOPE
from tests.shared.files_pod import MIB, TOKEN, Pod, served
from tests.shared.sockets import in_thread, until
from tests.shared.web import berth

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


@dataclass
class Stage:
    """Berth's web process, and a volume of bob's whose files a process on this machine serves."""

    cast: Cast
    pod: Pod
    volume: Volume
    session: FilesSession
    base: str
    web: aiohttp.ClientSession

    async def ask(
        self, method: str, path: str, by: Actor | None = None, **options: Any
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request with a token of the person; bob by default."""
        headers = options.pop("headers", {}) | {"Authorization": f"Bearer {await self.token(by)}"}
        async with self.web.request(method, self.base + path, headers=headers, **options) as answer:
            return answer.status, dict(answer.headers), await answer.read()

    async def token(self, by: Actor | None) -> str:
        user = (by or self.cast.bob).user
        return str((await in_thread(tokens.issue)(user, "script", EVERY_SCOPE, None))[1])


def furnished(cast: Cast, port: int) -> tuple[Volume, FilesSession]:
    volume = Volume.objects.create(
        tenant=cast.demo, owner=cast.bob.user, cluster=cast.cluster, name="data", kind="dataset",
        requested_mib=1024, phase="ready", access="rwx", shared="read",
    )  # fmt: skip
    session = FilesSession.objects.create(
        volume=volume,
        by=cast.bob.user,
        writes=True,
        phase="ready",
        host=f"127.0.0.1:{port}",
        token=encrypt(TOKEN),
    )
    return volume, session


@pytest.fixture
async def stage(cast: Cast, tmp_path: Path) -> AsyncIterator[Stage]:
    with served(tmp_path) as pod:
        volume, session = await in_thread(furnished)(cast, pod.port)
        async with berth() as port, aiohttp.ClientSession() as web:
            base = f"http://localhost:{port}/api/v1/volumes/{volume.pk}/"
            yield Stage(cast, pod, volume, session, base, web)
    await in_thread(connections.close_all)()


async def code_of(answer: tuple[int, Any, bytes]) -> tuple[int, str]:
    return answer[0], json.loads(answer[2])["error"]["code"]


async def test_a_file_goes_up_in_pieces_and_down_as_what_no_browser_shows(stage: Stage) -> None:
    data = os.urandom(2 * MIB + 5)
    total = len(data)
    at = "files/content/?path=pages/<b>.html"
    assert (await stage.ask("POST", "files/", json={"path": "pages"}))[0] == 201
    first = {"Content-Range": f"bytes 0-{MIB - 1}/{total}"}
    assert (await stage.ask("PUT", at, data=data[:MIB], headers=first))[0] == 202
    late = {"Content-Range": f"bytes {total - 5}-{total - 1}/{total}"}
    status, _, body = await stage.ask("PUT", at, data=data[-5:], headers=late)
    assert status == 409 and str(MIB).encode() in body
    rest = {"Content-Range": f"bytes {MIB}-{total - 1}/{total}"}
    assert (await stage.ask("PUT", at, data=data[MIB:], headers=rest))[0] == 201
    status, headers, body = await stage.ask("GET", at)
    assert (status, body) == (200, data)
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Disposition"] == "attachment; filename*=UTF-8''%3Cb%3E.html"
    assert "sandbox" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    status, headers, body = await stage.ask("GET", at, headers={"Range": "bytes=5-9"})
    assert (status, body, headers["Content-Range"]) == (206, data[5:10], f"bytes 5-9/{total}")
    assert (await stage.ask("PATCH", at, json={"to": "b.html"}))[0] == 200
    assert (await stage.ask("DELETE", "files/content/?path=pages"))[0] == 204
    assert stage.pod.names() == ["b.html"]


async def test_only_those_who_may_mount_it_read_and_only_its_owner_writes(stage: Stage) -> None:
    (stage.pod.folder / "a").write_text("a")
    cast, at = stage.cast, "files/content/?path=a"
    assert (await stage.ask("GET", at, cast.alice))[0] == 200  # it is shared to read
    assert await code_of(await stage.ask("PUT", at, cast.alice, data=b"b")) == (403, "read_only")
    assert await code_of(await stage.ask("GET", at, cast.victor)) == (403, "not_shared")
    assert (await stage.ask("GET", at, cast.carol))[0] == 404
    async with stage.web.get(stage.base + at) as answer:
        assert answer.status == 401
    assert stage.pod.names() == ["a"] and (stage.pod.folder / "a").read_text() == "a"


async def test_a_browser_that_writes_needs_its_csrf_token(stage: Stage) -> None:
    def signed_in() -> str:
        client = Client()
        client.force_login(stage.cast.bob.user)
        return client.cookies[settings.SESSION_COOKIE_NAME].value

    cookie = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={await in_thread(signed_in)()}"}
    async with stage.web.put(stage.base + "files/content/?path=a", data=b"a", headers=cookie) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (403, "csrf_failed")
    async with stage.web.get(stage.base + "files/?path=", headers=cookie) as answer:
        assert answer.status == 200
    assert stage.pod.names() == []


async def test_refusals_of_the_program_have_a_code_and_words(stage: Stage) -> None:
    assert await code_of(await stage.ask("GET", "files/content/?path=none")) == (404, "no_such_file")
    assert await code_of(await stage.ask("PUT", "files/content/?path=../a", data=b"")) == (422, "bad_path")
    assert await code_of(await stage.ask("GET", "files/?path=none")) == (404, "no_such_file")
    assert (await stage.ask("GET", "files/content/"))[0] == 400

    async def pieces() -> AsyncIterator[bytes]:
        yield b"a"

    assert await code_of(await stage.ask("PUT", "files/content/?path=a", data=pieces())) == (411, "no_length")
    await in_thread(FilesSession.objects.update)(host="127.0.0.1:1")
    assert await code_of(await stage.ask("GET", "files/content/?path=a")) == (502, "files_session_away")
    assert await code_of(await stage.ask("GET", "files/?path=")) == (502, "files_session_away")


@pytest.mark.parametrize("reason", ["right", "session"])
async def test_a_transfer_ends_with_the_right_to_it(
    stage: Stage, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "RECHECK_SECONDS", 0.05)
    going_on, size = asyncio.Event(), 64 * MIB

    async def slowly() -> AsyncIterator[bytes]:
        yield b"x" * MIB
        await going_on.wait()

    headers = {"Authorization": f"Bearer {await stage.token(None)}", "Content-Length": str(size)}
    at = stage.base + "files/content/?path=a"
    sending = asyncio.ensure_future(stage.web.put(at, data=slowly(), headers=headers))
    ask = {"Content-Range": f"bytes */{size}"}
    answer = await stage.ask("PUT", "files/content/?path=a", headers=ask)
    while b"upload_busy" not in answer[2] and str(MIB).encode() not in answer[2]:
        answer = await stage.ask("PUT", "files/content/?path=a", headers=ask)
    if reason == "right":
        await in_thread(members.remove)(stage.cast.alice, stage.cast.demo, "bob")
    else:
        await in_thread(sessions.end)(stage.cast.bob, stage.volume)
    with pytest.raises(aiohttp.ClientError):
        (await sending).raise_for_status()
    await until("no transfer is under way", lambda: not door._under_way)


async def test_a_person_has_few_transfers_at_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MOST_AT_ONCE", 0)
    (stage.pod.folder / "a").write_text("a")
    answer = await stage.ask("GET", "files/content/?path=a")
    assert await code_of(answer) == (429, "too_many_transfers")
    assert "Retry-After" in answer[1]
