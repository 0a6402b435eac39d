"""The program that serves files in a session's pod, as a process of its own on a folder: no path leads out of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devcluster.testing.waiting import until
from tests.shared.files_pod import MIB, SECRET, Pod, served
from tests.small_disk import small_disk


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Pod]:
    with served(tmp_path) as found:
        yield found


def test_it_makes_lists_reads_renames_and_deletes(running: Pod) -> None:
    assert running.ask("POST", "/folder", path="runs")[0] == 201
    assert running.ask("POST", "/folder", path="runs")[1]["code"] == "already_there"
    assert running.put("runs/ä b.csv", b"0123456789")[0] == 201
    assert running.names("runs") == ["ä b.csv"]
    assert running.ask("GET", "/content", path="runs/ä b.csv") == (200, b"0123456789")
    assert running.ask("GET", "/content", path="runs/ä b.csv", range="bytes=2-4") == (206, b"234")
    assert running.ask("GET", "/content", path="runs/ä b.csv", range="bytes=-3") == (206, b"789")
    assert running.ask("GET", "/content", path="runs/ä b.csv", range="bytes=10-")[0] == 416
    assert running.ask("GET", "/content", path="runs")[1]["code"] == "no_file"
    assert running.ask("POST", "/move", path="runs/ä b.csv", to="c.csv")[0] == 201
    assert running.put("d.csv", b"")[0] == 201
    assert running.ask("POST", "/move", path="d.csv", to="c.csv")[1]["code"] == "already_there"
    assert running.ask("POST", "/move", path="runs", to="runs/in")[0] == 422
    assert running.put("runs", b"")[1]["code"] == "is_folder"
    assert running.put("runs/a/b", b"")[1]["code"] == "no_such_file"
    assert running.put("runs/x", b"")[0] == 201
    assert running.ask("DELETE", "/content", path="runs")[1]["code"] == "not_empty"
    assert running.ask("DELETE", "/content", path="runs", recursive="true")[0] == 200
    assert running.ask("DELETE", "/content", path="c.csv")[0] == 200
    assert running.names() == ["d.csv"]
    assert running.ask("DELETE", "/content", path="")[1]["code"] == "bad_path"


def test_a_cut_upload_continues_behind_what_arrived(running: Pod) -> None:
    data = os.urandom(3 * MIB)
    total = len(data)
    running.breaks_off("big", f"Content-Length: {total}", data[:MIB])

    def received() -> int:
        return int(running.put("big", b"", content_range=f"bytes */{total}")[1].get("received", 0))

    until(lambda: received() == MIB)
    assert running.names() == []  # a part is no file yet
    late = running.put("big", data[-5:], content_range=f"bytes {total - 5}-{total - 1}/{total}")
    assert late == (409, {"code": "wrong_offset", "received": MIB, "size": total})
    middle = running.put("big", data[MIB : 2 * MIB], content_range=f"bytes {MIB}-{2 * MIB - 1}/{total}")
    assert middle == (202, {"received": 2 * MIB, "size": total})
    end = running.put("big", data[2 * MIB :], content_range=f"bytes {2 * MIB}-{total - 1}/{total}")
    assert end[0] == 201
    assert hashlib.sha256((running.folder / "big").read_bytes()).digest() == hashlib.sha256(data).digest()
    assert [one.name for one in running.folder.iterdir()] == ["big"]


@pytest.mark.parametrize(
    "header", ["bytes 0-1/1", "bytes 1-0/4", "bytes 0-3/4", "items 0-1/2", "bytes 5-6/6", "x"]
)
def test_a_range_that_does_not_fit_is_refused(running: Pod, header: str) -> None:
    assert running.put("a", b"ab", content_range=header)[1]["code"] == "bad_range"


def test_two_uploads_of_a_name_do_not_mix(running: Pod) -> None:
    assert running.put("a", b"12", content_range="bytes 0-1/4", upload="one")[0] == 202
    assert running.put("a", b"", content_range="bytes */4", upload="two")[1]["received"] == 0
    assert running.put("a", b"cdef", content_range="bytes 0-3/4", upload="two")[0] == 201
    assert running.put("a", b"34", content_range="bytes 2-3/4", upload="one")[0] == 201
    assert running.ask("GET", "/content", path="a") == (200, b"1234")


def test_a_large_folder_is_listed_in_parts(running: Pod) -> None:
    wanted = sorted(f"f{number}" for number in range(1203))
    for name in wanted:
        (running.folder / name).touch()
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        part = running.ask("GET", "/list", path="", after=after)[1]
        found += [one["name"] for one in part["entries"]]
        after = part["next"]
    assert found == wanted


def test_without_its_token_it_answers_only_whether_it_is_ready(running: Pod) -> None:
    assert running.ask("GET", "/ready", token="")[0] == 200
    for method, what in (("GET", "/list"), ("GET", "/content"), ("PUT", "/content"), ("DELETE", "/content")):
        assert running.ask(method, what, path="a", token="of-another")[0] == 401


def test_read_only_it_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "a").write_text("a")
    with served(tmp_path, "--read-only") as found:
        assert found.ask("GET", "/content", path="a") == (200, b"a")
        for method, what in (
            ("PUT", "/content"),
            ("DELETE", "/content"),
            ("POST", "/folder"),
            ("POST", "/move"),
        ):
            assert found.ask(method, what, path="a", to="b")[1]["code"] == "read_only"
        assert found.names() == ["a"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_volume_is_said_to_who_still_sends(tmp_path: Path) -> None:
    with small_disk(tmp_path / "volume", 2), served(tmp_path) as found:
        data = b"x" * (16 * MIB)
        assert found.put("a", data, content_range=f"bytes 0-{len(data) - 1}/{2 * len(data)}") == (
            507, {"code": "volume_full", "system": "ENOSPC"},
        )  # fmt: skip
        assert found.put("b", b"") == (201, {"received": 0, "size": 0, "done": True})


# --- No way out

PIECES = st.sampled_from(
    [
        "..",
        ".",
        "",
        "a",
        "in",
        "out",
        "up",
        "loop",
        "outside.txt",
        "etc",
        "passwd",
        "~",
        "a\0b",
        "%2e%2e",
        "x" * 300,
    ]
)
PATHS = st.tuples(st.sampled_from(["", "/", "//"]), st.lists(PIECES, max_size=6)).map(
    lambda made: made[0] + "/".join(made[1])
)


def furnish(folder: Path) -> None:
    """Lay links out of the folder, as a person in a workspace can."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / "a").write_text("inside")
    for name, target in (("out", ".."), ("up", "/"), ("loop", "loop"), ("file", "../outside.txt")):
        with suppress(FileExistsError):
            (folder / name).symlink_to(target)
        with suppress(FileExistsError):
            (folder / "in" / name).symlink_to(target if target != ".." else "../..")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(path=PATHS, to=PATHS, work=st.sampled_from(["list", "get", "put", "folder", "move", "delete"]))
def test_no_path_leads_out_of_the_folder(running: Pod, path: str, to: str, work: str) -> None:
    furnish(running.folder)
    around = running.folder.parent
    before = {one.name for one in around.iterdir()}
    asked = {
        "list": ("GET", "/list", {}),
        "get": ("GET", "/content", {}),
        "put": ("PUT", "/content", {}),
        "folder": ("POST", "/folder", {}),
        "move": ("POST", "/move", {"to": to}),
        "delete": ("DELETE", "/content", {"recursive": "true"}),
    }
    method, what, more = asked[work]
    status, body = running.ask(method, what, b"written" if work == "put" else None, path=path, **more)
    assert status != 500, body
    assert SECRET not in str(body)
    if status == 200 and work == "list":
        inside = {one.name for one in running.folder.rglob("*")} | {"a"}
        assert {one["name"] for one in body["entries"]} <= inside
    assert (around / "outside.txt").read_text() == SECRET
    assert {one.name for one in around.iterdir()} == before


def test_links_are_shown_and_never_followed(running: Pod) -> None:
    furnish(running.folder)
    kinds = {one["name"]: one["kind"] for one in running.ask("GET", "/list", path="")[1]["entries"]}
    assert kinds == {"in": "folder", "out": "link", "up": "link", "loop": "link", "file": "link"}
    assert running.ask("GET", "/content", path="file")[1]["code"] == "no_file"
    assert running.put("file", b"new")[0] == 201  # it takes the place of the link
    assert running.ask("DELETE", "/content", path="out", recursive="true")[0] == 200
    assert (running.folder.parent / "outside.txt").read_text() == SECRET


def test_a_pipe_does_not_hold_up_a_reader(running: Pod) -> None:
    os.mkfifo(running.folder / "pipe")
    assert running.ask("GET", "/content", path="pipe")[1]["code"] == "no_file"
