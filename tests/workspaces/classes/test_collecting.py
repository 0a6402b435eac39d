"""Collected folders: an archive from what workspaces send, whatever they send."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from accounts.errors import Conflict, Invalid
from tests.cast import Cast
from tests.shared.class_rows import make_class
from tests.shared.sockets import in_thread
from tests.shared.workspace_rows import make_workspace
from workspaces.classes import collecting
from workspaces.gateway import upstream
from workspaces.models import Phase, Workspace
from workspaces.state import jupyter

NAMES = ["a.txt", "deep", "..", "x/y", "bad\nname", "", 7, None]


@pytest.mark.parametrize("folder", ["", "~", "..", "a/../b", "a/\0", "x" * 300, "\u202e"])
def test_a_folder_is_a_path_in_the_home(folder: str) -> None:
    assert collecting.steps_of("~/course/hand-in/") == ["course", "hand-in"]
    with pytest.raises(Invalid):
        collecting.steps_of(folder)


def test_a_listing_is_read_as_far_as_its_names_are_safe() -> None:
    listing = [{"name": name, "type": "file", "last_modified": "2026-11-28T09:00:00Z"} for name in NAMES]
    found = collecting.entries_of({"content": [*listing, "x", {"type": "file"}]})
    assert [name for name, _is_folder, _at in found] == ["a.txt", "deep"]
    odd: list[Any] = [None, [], {"content": 7}, {"content": [{"name": "a", "last_modified": "9999999"}]}]
    assert [len(collecting.entries_of(body)) for body in odd] == [0, 0, 0, 1]
    many = {"content": [{"name": str(number)} for number in range(collecting.MOST_NAMES + 1)]}
    assert len(collecting.entries_of(many)) == collecting.MOST_NAMES


def jupyter_of(token: str) -> web.Application:
    """Jupyter with a hand-in of two files, one of which is shorter than it says, and names that leave the folder."""
    listings = {
        "hand-in": [("b.txt", "file"), ("..", "file"), ("week 1", "directory")],
        "hand-in/week 1": [("größe.txt", "notebook")],
    }

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == f"token {token}"
        way, _slash, path = request.match_info["path"].removeprefix("api/").partition("/")
        if way == "contents" and path in listings:
            return web.json_response({"content": [{"name": n, "type": kind} for n, kind in listings[path]]})
        if path == "hand-in/week 1/größe.txt":
            return web.Response(body=b"x" * 1000)
        if path == "hand-in/b.txt":
            cut = web.StreamResponse(headers={"Content-Length": "600"})
            await cut.prepare(request)
            await cut.write(b"y" * 100)
            assert request.transport is not None
            request.transport.close()
            return cut
        return web.Response(status=404)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    return app


FOLDERS = json.dumps({"content": [{"name": "a", "type": "directory"}, {"name": "b", "type": "directory"}]})


@pytest.mark.parametrize(
    ("listing", "said"),
    [
        ('{"content":' + "[" * 200_000, "files: 0"),
        ('{"content": ["' + "x" * collecting.MOST_LISTING_BYTES, "too many files"),
        (FOLDERS, f"after {collecting.MOST_FOLDERS} folders"),
    ],
)
async def test_no_listing_breaks_the_archive_or_has_no_end(listing: str, said: str) -> None:
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(text=listing)

    reader, pieces = await read(answer)
    assert said in "; ".join(reader.said()) and not pieces
    assert len(asked) <= collecting.MOST_FOLDERS


async def test_who_sends_slowly_is_not_waited_for_and_the_file_is_filled_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collecting, "SECONDS_OF_PERSON", 0.5)

    async def answer(request: web.Request) -> web.StreamResponse:
        if "/api/" in request.path:
            return web.json_response({"content": [{"name": "a"}, {"name": "b"}]})
        slow = web.StreamResponse(headers={"Content-Length": "600"})
        await slow.prepare(request)
        for _ in range(600):
            await slow.write(b"y")
            await asyncio.sleep(0.02)
        return slow

    reader, pieces = await read(answer)
    assert [text.split(":")[-1].split(",")[0].strip() for text in reader.said()[1:]] == [
        "cut short",
        "the connection broke off",
    ]
    assert sum(map(len, pieces)) == 512 * 3 and "files: 1" in reader.said()[0]


async def read(answer: Any) -> tuple[collecting.Reader, list[bytes]]:
    """Read the folder of a person whose Jupyter gives this answer."""
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with TestServer(app) as server:
        source = collecting.Source("bob", uuid4(), str(server.make_url("/")), "t")
        reader = collecting.Reader(source, ["hand-in"])
        pieces = [piece async for piece in reader.pieces("bob")]
        await upstream.close()
    return reader, pieces


def make_rows(cast: Cast) -> tuple[Any, str, Workspace]:
    bobs = make_workspace(cast, cast.bob, name="week 3")
    row = make_class(cast, bobs, make_workspace(cast, cast.alice, Phase.STOPPED, name="week 3"))
    return row, jupyter.gateway_token(bobs), bobs


@pytest.mark.django_db(transaction=True)
async def test_the_folders_of_all_come_as_one_archive_which_says_what_is_missing(cast: Cast) -> None:
    row, token, bobs = await in_thread(make_rows)(cast)
    async with TestServer(jupyter_of(token)) as server:
        at = {"host": "127.0.0.1", "jupyter_port": server.port}
        await in_thread(Workspace.objects.filter(pk=bobs.pk).update)(**at)
        archive = await in_thread(collecting.begin)(cast.alice, row, "hand-in")
        body = b"".join([piece async for piece in archive])
        await upstream.close()
    with tarfile.open(fileobj=io.BytesIO(body)) as read:
        sizes = {one.name: one.size for one in read.getmembers()}
        last = read.extractfile("collected.txt")
        assert last is not None
        report = last.read().decode().splitlines()
    assert {name: size for name, size in sizes.items() if name != "collected.txt"} == {
        "bob/b.txt": 600,
        "bob/week 1/größe.txt": 1000,
    }
    assert report[0].startswith("bob: files: 2, bytes: 1600; b.txt")
    assert [line.partition(":")[0] for line in report] == ["bob", "alice", "alice", "dora", "nobody"]
    assert await in_thread(lambda: "folder_collected" in bobs.events.values_list("code", flat=True))()
    assert not collecting._under_way

    await in_thread(Workspace.objects.update)(phase=Phase.STOPPED)
    with pytest.raises(Conflict):
        await in_thread(collecting.begin)(cast.alice, row, "hand-in")
