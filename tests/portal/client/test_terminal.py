"""Commands of `berth` that end on this machine, or meet something that is not Berth. No database."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
import typer
from typer.testing import CliRunner, Result

from berth import VERSION, Client
from berth.cli import sites, ssh
from berth.cli.main import app

Run = Callable[..., Result]
URL = "https://berth.example"


@pytest.fixture
def asked() -> list[httpx.Request]:
    """Return the requests that left this machine."""
    return []


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[httpx.Request]) -> Run:
    """Return a function that runs a command where Berth's address answers as a captive portal."""

    def portal(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, html="<html>Sign in to this network</html>")

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("BERTH_URL", URL)
    monkeypatch.delenv("BERTH_TOKEN", raising=False)
    monkeypatch.setattr(sites, "Client", partial(Client, transport=httpx.MockTransport(portal)))
    return lambda *arguments, **options: CliRunner().invoke(app, arguments, **options)


def test_a_line_end_is_no_part_of_a_token(
    run: Run, monkeypatch: pytest.MonkeyPatch, asked: list[httpx.Request]
) -> None:
    monkeypatch.setenv("BERTH_TOKEN", "brt_s3cret\n")
    assert run("whoami").exit_code == 6
    assert asked[0].headers["Authorization"] == "Bearer brt_s3cret"
    monkeypatch.setenv("BERTH_TOKEN", "brt s3cret")
    refused = run("whoami")
    assert (refused.exit_code, "s3cret" in refused.output) == (2, False)


def test_an_address_of_another_site_is_not_kept(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    other = httpx.MockTransport(lambda _request: httpx.Response(200, json={"name": "another site"}))
    assert run("login", URL, "--with-token", input="brt_x\n").exit_code == 6
    assert run("login", "http://berth:abc").exit_code == 2
    monkeypatch.setattr(sites, "Client", partial(Client, transport=other))
    assert run("login", URL, "--with-token", input="brt_x\n").exit_code == 2
    assert not sites.path().exists()


def test_a_socks_proxy_without_support_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_support(*_: object) -> Client:
        raise ImportError("socksio")

    monkeypatch.setattr(sites, "Client", without_support)
    assert "SOCKS" in run("login", URL, "--no-browser").stderr


def test_signing_out_forgets_the_token_also_without_berth(run: Run) -> None:
    sites.write(sites.Sites(URL, {URL: "brt_abc_s3cret"}))
    result = run("logout", "--json")
    assert (result.exit_code, sites.read().tokens) == (0, {})
    assert json.loads(result.stdout)["url"] == URL


def test_a_private_key_never_leaves(run: Run, tmp_path: Path, asked: list[httpx.Request]) -> None:
    file = tmp_path / "id_ed25519"
    for text in ("-----BEGIN OPENSSH PRIVATE KEY-----\nssh-\n", "ssh-ed25519 AAAA\nssh-rsa BBBB"):
        file.write_text(text)
        assert run("keys", "add", str(file)).exit_code == 2
    assert asked == []


def test_an_archive_is_printed_as_it_comes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[int] = []

    def pieces() -> Iterator[bytes]:
        for _ in range(3):
            printed.append(sys.stdout.buffer.tell())
            yield b"\xff" * 1000

    headers = {"Berth-Version": VERSION, "Content-Type": "application/x-tar"}
    berth = httpx.MockTransport(lambda _request: httpx.Response(200, headers=headers, content=pieces()))
    monkeypatch.setattr(sites, "Client", partial(Client, transport=berth))
    monkeypatch.setenv("BERTH_TOKEN", "brt_x")
    result = run("api", "POST", "class-launches/1/collect/", '{"folder": "hand-in"}')
    assert (result.exit_code, printed, result.stdout_bytes) == (0, [0, 1000, 2000], b"\xff" * 3000)


def test_ctrl_c_at_a_question_ends_as_everywhere(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise typer.Abort

    monkeypatch.setattr(sites, "address", interrupted)
    assert run("whoami").exit_code == 130


@pytest.mark.parametrize("before", ["", "Host a\n    Include {own}\n"])
def test_ssh_gets_one_line_that_counts_for_all_hosts(tmp_path: Path, before: str) -> None:
    folder = tmp_path / "me too"
    folder.mkdir()
    main, own = folder / "config", folder / ssh.FILE
    main.write_text(before.format(own=own))
    for _ in range(2):
        ssh.include(main, own)
    assert main.read_text() == f'Include "{own}"\n' + (before.format(own=own) or "")


def test_ssh_looks_for_relative_files_in_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    lines = (
        "Include berth.config",
        " include ~/.ssh/berth.config",
        f'Include "{tmp_path}/.ssh/berth.config"',
    )
    assert {ssh.included(line) for line in lines} == {tmp_path / ".ssh" / "berth.config"}
    monkeypatch.setenv(ssh.SETTING, "conf")
    assert ssh.options() == ["-F", str(Path.cwd() / "conf")]
