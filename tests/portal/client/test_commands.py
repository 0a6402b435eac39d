"""Commands of `berth` against a Berth over HTTP, with workspaces and jobs as rows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from django.utils import timezone
from typer.testing import CliRunner, Result

from accounts.credentials import device_codes, tokens
from accounts.models import APIToken, DeviceCode, Scope
from berth.cli import ssh, steps
from berth.cli.main import app
from tests.cast import KEY, Cast, make_cast
from tests.shared.clients import EVERY_SCOPE
from tests.shared.job_rows import make_job
from tests.shared.log_rows import make_stream, write
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase, Workspace

pytestmark = pytest.mark.django_db(transaction=True)
Test = TypeVar("Test", bound=Callable[..., None])


def runs(*commands: str) -> Callable[[Test], Test]:
    """Mark a test that runs these commands with success: `tests/portal/parity` has a list of those that need one."""

    def marked(test: Test) -> Test:
        test.runs = commands  # type: ignore[attr-defined]
        return test

    return marked


class Terminal:
    """A person's terminal, with a folder of its own for settings and SSH."""

    def __init__(self, folder: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.address = folder, address
        self.succeeded: list[str] = []
        for name in ("BERTH_URL", "BERTH_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
        monkeypatch.setenv(ssh.SETTING, str(folder / "ssh" / "config"))
        monkeypatch.setattr(steps, "LOOK_SECONDS", 0.0)
        self.runner = CliRunner()

    def __call__(self, *arguments: str, code: int = 0, **options: Any) -> Result:
        result = self.runner.invoke(app, arguments, **options)
        assert result.exit_code == code, (arguments, result.output, result.exception)
        if code == 0:
            self.succeeded.append(" ".join(arguments))
        return result

    def json(self, *arguments: str, **options: Any) -> Any:
        return json.loads(self(*arguments, "--json", **options).stdout)

    def signs_in(self, house: Cast, actor: str = "alice") -> None:
        user = getattr(house, actor).user
        scopes = [*EVERY_SCOPE, Scope.ADMIN] if user.is_staff else EVERY_SCOPE
        token = tokens.issue(user, "terminal", scopes)[1]
        self("login", self.address, "--with-token", input=f"{token}\n")


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


@pytest.fixture
def terminal(
    tmp_path: Path, live_server: Any, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Terminal]:
    made = Terminal(tmp_path, live_server.url, monkeypatch)
    yield made
    for command in getattr(request.function, "runs", ()):
        assert any(f"{line} ".startswith(f"{command} ") for line in made.succeeded), command


def test_a_token_is_checked_stored_for_its_user_alone_and_forgotten(
    terminal: Terminal, cast: Cast, settings: Any
) -> None:
    assert "berth login" in terminal("ls", code=4).stderr
    terminal("login", terminal.address, "--with-token", input="brt_wrong\n", code=4)
    stored = terminal.folder / "berth" / "sites.json"
    assert not stored.exists()
    terminal.signs_in(cast)
    assert (stored.stat().st_mode & 0o777, stored.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert terminal.json("whoami")["username"] == "alice"
    settings.VERSION = "9.9.9"
    assert "the server is Berth 9.9.9" in terminal("whoami").stderr
    assert terminal("api", "GET", "me/").stdout == terminal("api", "get", "/api/v1/me/").stdout
    terminal("logout")
    terminal("whoami", code=4)
    terminal("--url", "http://127.0.0.1:9", "whoami", code=4)


@pytest.mark.parametrize("answer", ["allow", "refuse"])
def test_a_code_that_is_confirmed_in_the_browser_signs_in(
    terminal: Terminal, cast: Cast, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)

    def meanwhile(_seconds: float) -> None:
        for code in DeviceCode.objects.filter(user=None).values_list("user_code", flat=True):
            getattr(device_codes, answer)(cast.alice, code)

    monkeypatch.setattr("berth.cli.login.time", SimpleNamespace(sleep=meanwhile, monotonic=time.monotonic))
    is_allowed = answer == "allow"
    result = terminal("login", terminal.address, code=0 if is_allowed else 8)
    assert opened[0].split("code=")[1] in result.stderr
    assert APIToken.objects.count() == is_allowed
    terminal("logout", code=0 if is_allowed else 4)
    assert not APIToken.objects.filter(revoked_at=None).exists()


@runs("launch", "stop", "start")
def test_a_workspace_is_launched_listed_changed_and_stopped(terminal: Terminal, cast: Cast) -> None:
    terminal.signs_in(cast)
    assert "a100-1" in terminal("launch", "exp-1", code=2).stderr  # which size
    launch = ("launch", "exp-1", "--flavor", "a100-1", "--env", "A=b=c", "--max-runtime-minutes", "60")
    launched = terminal.json(*launch, "--no-wait")
    assert (launched["tenant"], launched["image"], launched["env"]) == ("demo", "jupyter", {"A": "b=c"})
    refused = terminal(*launch, "--json", code=3)
    assert json.loads(refused.stderr)["error"]["code"] == "name_taken"
    assert (
        "exp-1: starting" in terminal("ls").stdout.replace("\t", ": ") or "waiting" in terminal("ls").stdout
    )
    assert "2/10 admission" in terminal("start", "exp-1", "--timeout", "0", code=8).stderr
    terminal("open", "exp-1", code=7)
    terminal("extend", "exp-1", "--minutes", "30", code=3)  # nothing runs yet
    assert terminal("queue").stdout.startswith("a100\t1\tworkspace\texp-1\talice\t1\t")
    assert terminal("quota").stdout.startswith("demo\ta100\t0\t4\t4\n")
    assert terminal("usage", "--by", "pool", "--from", "2026-11-01").stdout.startswith("total\t0.0\t")
    assert terminal.json("stop", "exp-1")["desired"] == "stopped"
    terminal("stop", "exp-2", code=5)
    assert terminal.json("start", "exp-1", "--no-wait")["desired"] == "running"
    assert terminal.json("ls", "--phase", "ready") == []


@runs("extend")
def test_a_name_is_ones_own_and_others_take_an_id(terminal: Terminal, cast: Cast) -> None:
    end = timezone.now() + timedelta(minutes=5)
    mine, theirs = make_workspace(cast, cast.alice, stops_at=end), make_workspace(cast, cast.bob)
    other, job = make_workspace(cast, cast.bob, name="other"), make_job(cast, cast.bob, name="train")
    terminal.signs_in(cast)
    assert str(other.pk) in terminal("stop", "other", code=5).stderr
    assert str(job.pk) in terminal("jobs", "cancel", "train", code=5).stderr
    assert terminal.json("extend", "exp-1", "--minutes", "30")["stops_at"] > end.isoformat()
    assert terminal.json("stop", "exp-1")["id"] == str(mine.pk)
    assert terminal.json("stop", str(theirs.pk))["id"] == str(theirs.pk)


def test_a_start_that_fails_says_why(terminal: Terminal, cast: Cast) -> None:
    workspace = make_workspace(cast, cast.alice, Phase.FAILED)
    Workspace.objects.filter(pk=workspace.pk).update(desired="running")
    terminal.signs_in(cast)
    result = terminal("start", "exp-1", code=7)
    assert "berth: " in result.stderr


def test_a_log_shows_its_last_lines_or_all(terminal: Terminal, cast: Cast) -> None:
    workspace = make_workspace(cast, cast.alice, Phase.STOPPED)
    write(make_stream(cast.demo, workspace.pk, "workspace"), [f"line {number}" for number in range(700)])
    terminal.signs_in(cast)
    assert terminal("logs", "exp-1", "-n", "2").stdout == "line 698\nline 699\n"
    everything = terminal("logs", "exp-1", "--all", "--follow").stdout.splitlines()
    assert everything == [f"line {number}" for number in range(700)]


@runs("jobs submit", "jobs cancel")
def test_a_job_is_submitted_listed_and_cancelled(terminal: Terminal, cast: Cast) -> None:
    terminal.signs_in(cast)
    command = ("jobs", "submit", "train", "--flavor", "a100-1", "--retries", "1", "--", "python", "-c", "1")
    job = json.loads(terminal(*command[:-4], "--json", *command[-4:]).stdout)
    assert job["command"] == ["python", "-c", "1"]
    write(make_stream(cast.demo, job["id"], run=job["id"]), ["one", "two"])
    assert terminal("jobs", "logs", "train").stdout == "one\ntwo\n"
    assert terminal("jobs", "ls").stdout.startswith("train\t")
    assert terminal.json("jobs", "cancel", "train")["phase"] in ("cancelling", "cancelled")


@runs("configuration apply")
def test_the_configuration_is_printed_compared_and_applied(terminal: Terminal, cast: Cast) -> None:
    terminal.signs_in(cast, "admin")
    file = terminal.folder / "berth.yaml"
    terminal("configuration", "get", "-o", str(file))
    assert terminal("configuration", "get").stdout == file.read_text()
    assert terminal("configuration", "diff", str(file)).stdout == "Nothing changes.\n"
    file.write_text(file.read_text().replace("name: Demo", "name: Vision"))
    terminal("configuration", "apply", str(file), code=2)  # nobody can be asked
    shown = terminal("configuration", "diff", str(file), code=9).stdout
    assert shown == "~ tenants demo\n    name: 'Demo' → 'Vision'\n"
    assert terminal("configuration", "apply", str(file), "--yes").stdout == shown
    assert terminal.json("configuration", "diff", str(file))["changed"] == []
    file.write_text("tenants: 7\n")
    wrong = terminal("configuration", "diff", str(file), "--json", code=3)
    assert json.loads(wrong.stderr)["error"]["code"] == "configuration_invalid"


@runs("keys add")
def test_ssh_knows_the_way_and_the_host_keys(
    terminal: Terminal, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_workspace(cast, cast.alice)
    terminal.signs_in(cast)
    ran: list[list[str]] = []

    def become(_path: str, arguments: list[str]) -> None:
        ran.append(arguments)
        raise SystemExit(0)

    monkeypatch.setattr("os.execv", become)
    (config := terminal.folder / "ssh" / "config").parent.mkdir()
    config.write_text("Host other\n    User me\n")
    for _ in range(2):
        terminal("ssh", "exp-1", "ls", "-la")
        terminal("cp", "a.csv", "exp-1:work/")
    known = terminal.folder / "ssh" / "berth_known_hosts"
    own = terminal.folder / "ssh" / "berth.config"
    assert config.read_text() == f"Include {own}\nHost other\n    User me\n"
    assert own.read_text().count("Host berth-exp-1\n") == 1
    assert f"UserKnownHostsFile {known} " in own.read_text()
    assert known.read_text().split()[:2] == [
        own.read_text().split("HostKeyAlias ")[1].split()[0],
        "ssh-ed25519",
    ]
    host = "jovyan@berth-exp-1"
    options = ["-F", str(config)]
    assert ran[:2] == [
        ["ssh", *options, host, "ls", "-la"],
        ["scp", *options, "--", "a.csv", f"{host}:work/"],
    ]
    terminal("cp", "a", "b", code=2)
    (terminal.folder / "key.pub").write_text(KEY)
    assert terminal.json("keys", "add", str(terminal.folder / "key.pub"))["name"] == "alice@laptop"
