"""SFTP of the program in a session's pod, with OpenSSH's own client: no path leads out of the folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.shared.files_pod import SECRET, TOKEN, Pod, served

pytestmark = pytest.mark.skipif(shutil.which("sftp") is None, reason="there is no OpenSSH client here")
# In place of ssh: it opens the connection as Berth's jump does, and passes bytes.
SSH = f"""#!{sys.executable}
import os, socket, sys, threading
far = socket.create_connection(("127.0.0.1", int(os.environ["POD_PORT"])))
far.sendall(os.environ["POD_REQUEST"].replace("|", "\\r\\n").encode())
head = b""
while not head.endswith(b"\\r\\n\\r\\n"):
    head += far.recv(1)
assert head.startswith(b"HTTP/1.1 101 "), head
def back():
    while piece := far.recv(65536):
        os.write(1, piece)
    os._exit(0)
threading.Thread(target=back).start()
while piece := os.read(0, 65536):
    far.sendall(piece)
far.shutdown(socket.SHUT_WR)
"""


class Client:
    """OpenSSH's sftp."""

    def __init__(self, pod: Pod, folder: Path) -> None:
        self.pod, self.folder = pod, folder
        self.ssh = folder / "ssh"
        self.ssh.write_text(SSH)
        self.ssh.chmod(0o755)

    def says(self, *batch: str, read_only: bool = False, fails: bool = False) -> str:
        query = f"read_only={'true' if read_only else 'false'}"
        request = f"POST /sftp?{query} HTTP/1.1|Host: x|Authorization: Bearer {TOKEN}||"
        done = subprocess.run(
            ["sftp", "-q", "-b", "-", "-S", str(self.ssh), "berth"],
            input="\n".join(batch) + "\n",
            env=os.environ | {"POD_PORT": str(self.pod.port), "POD_REQUEST": request},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with served(tmp_path) as pod:
        yield Client(pod, tmp_path)


def test_files_go_both_ways_and_are_listed_renamed_and_deleted(client: Client, tmp_path: Path) -> None:
    data = os.urandom(3_000_001)
    (tmp_path / "here").write_bytes(data)
    volume = client.pod.folder
    client.says(
        "mkdir runs", f"put -p {tmp_path}/here runs/a", f"get runs/a {tmp_path}/back", "chmod 600 runs/a"
    )
    assert hashlib.sha256((tmp_path / "back").read_bytes()).digest() == hashlib.sha256(data).digest()
    assert (volume / "runs/a").stat().st_mode & 0o777 == 0o600
    assert int((volume / "runs/a").stat().st_mtime) == int((tmp_path / "here").stat().st_mtime)
    client.says("cd runs", "rename a 'ä b'")
    assert "3000001" in client.says("ls -l runs")
    assert [one.name for one in (volume / "runs").iterdir()] == ["ä b"]
    client.says("rm 'runs/ä b'", "rmdir runs")
    assert list(volume.iterdir()) == []


def test_an_upload_goes_on_where_it_was_cut(client: Client, tmp_path: Path) -> None:
    data = os.urandom(500_000)
    (tmp_path / "here").write_bytes(data)
    (client.pod.folder / "a").write_bytes(data[:200_000])
    client.says(f"reput {tmp_path}/here a")
    assert (client.pod.folder / "a").read_bytes() == data


def test_a_folder_with_many_files_is_listed_whole(client: Client) -> None:
    for number in range(350):
        (client.pod.folder / f"{number:03}").touch()
    assert client.says("ls -1").split() == ["sftp>", "ls", "-1", *(f"{number:03}" for number in range(350))]


def test_who_may_only_read_changes_nothing(client: Client, tmp_path: Path) -> None:
    (client.pod.folder / "a").write_text("as it was")
    (tmp_path / "here").write_text("new")
    for change in (
        f"put {tmp_path}/here b",
        f"put {tmp_path}/here a",
        "rm a",
        "mkdir d",
        "rename a b",
        "chmod 600 a",
    ):
        assert "ermission denied" in client.says(change, read_only=True, fails=True)
    client.says(f"get a {tmp_path}/back", read_only=True)
    assert (tmp_path / "back").read_text() == "as it was"
    assert [one.name for one in client.pod.folder.iterdir()] == ["a"]


def test_no_path_and_no_link_leads_out(client: Client, tmp_path: Path) -> None:
    volume = client.pod.folder
    (volume / "up").symlink_to(tmp_path)
    (volume / "secret").symlink_to(tmp_path / "outside.txt")
    ways = ["../outside.txt", "/../../outside.txt", "secret", "up/outside.txt", f"{tmp_path}/outside.txt"]
    for path in ways:
        client.says(f"get {path} {tmp_path}/stolen", fails=True)
    assert not (tmp_path / "stolen").exists()
    for path in ways[2:]:
        client.says(f"put {tmp_path}/ssh {path}", fails=True)
    client.says(f"put {tmp_path}/ssh ../../outside.txt")  # the folder is all that there is
    assert (volume / "outside.txt").exists()
    assert (tmp_path / "outside.txt").read_text() == SECRET


@pytest.mark.parametrize("token", ["", "wrong"])
def test_without_the_token_nothing_is_opened(client: Client, token: str) -> None:
    assert client.pod.ask("POST", "/sftp", token=token)[0] == 401


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(packets=st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=200)), max_size=20))
def test_any_bytes_are_answered_or_end_the_connection(
    client: Client, packets: list[tuple[int, bytes]]
) -> None:
    before = sorted(client.folder.iterdir())
    with socket.create_connection(("127.0.0.1", client.pod.port), timeout=20) as far:
        far.sendall(f"POST /sftp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        for kind, body in packets:
            far.sendall((len(body) + 1).to_bytes(4, "big") + bytes([kind]) + body)
        far.shutdown(socket.SHUT_WR)
        while far.recv(65536):
            pass
    assert client.pod.ask("GET", "/ready")[0] == 200
    assert sorted(client.folder.iterdir()) == before
