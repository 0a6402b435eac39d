"""Settings with which Berth refuses to start."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path
from unittest.mock import patch

import environ
import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from portal.environment import BASE_DIR, from_url, to_the_primary
from portal.safe_start import unsafe

GOOD = {
    "secret_key": "0123456789abcdef" * 4,
    "base_url": "https://berth.example",
    "proxies": "10.1.2.0/24,fd00::/64",
}


@pytest.mark.parametrize("proxies", ["", "127.0.0.1", "10.1.0.0/16", "10.0.0.7, 10.0.0.8", "fd00::1"])
def test_settings_of_a_production_may_start(proxies: str) -> None:
    assert unsafe(**GOOD | {"proxies": proxies}) == ""


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (
            "secret_key",
            ["", "changeme", "0123456789abcdef" * 3, "ab" * 40, "django-insecure-" + "0123456789abcdef" * 4],
        ),
        ("base_url", [""]),
        ("proxies", ["*", "10.0.0.0/8", "127.0.0.1,0.0.0.0/0", "fd00::/8", "::/0"]),
    ],
)
def test_it_says_what_to_set(name: str, values: list[str]) -> None:
    variable = {
        "secret_key": "BERTH_SECRET_KEY",
        "base_url": "BERTH_BASE_URL",
        "proxies": "FORWARDED_ALLOW_IPS",
    }
    for value in values:
        assert variable[name] in unsafe(**GOOD | {name: value}), value


@pytest.mark.parametrize(("trial", "starts"), [pytest.param("1", True, marks=pytest.mark.slow), ("0", False)])
def test_a_weak_key_ends_every_command_but_not_a_trial(trial: str, starts: bool) -> None:
    env = {
        "PATH": os.environ["PATH"], "BERTH_STATE_DIR": "/nonexistent", "BERTH_TRIAL": trial,
        "BERTH_SECRET_KEY": "short", "DATABASE_URL": "postgres:////nonexistent/berth",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "manage.py", "help"],
        cwd=BASE_DIR,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ("BERTH_SECRET_KEY" not in done.stderr + done.stdout) == starts


@given(
    signs=st.text(st.sampled_from("/?#@%[]:;&= \\ü"), max_size=4),
    kind=st.sampled_from(["DATABASE", "BERTH_EMAIL"]),
)
def test_a_url_that_is_not_understood_is_named_and_its_password_is_not(signs: str, kind: str) -> None:
    scheme, read = {
        "DATABASE": ("postgres", environ.Env().db_url),
        "BERTH_EMAIL": ("smtp+tls", environ.Env().email_url),
    }[kind]
    value = f"{scheme}://berth:hunter2{signs}hunter3@host.example/berth"
    with patch.dict(os.environ, {f"{kind}_URL": value}):
        try:
            from_url(read, f"{kind}_URL")
        except ImproperlyConfigured as error:
            shown = "".join(traceback.format_exception(error))
            assert f"{kind}_URL" in str(error)
            assert "hunter" not in shown


def test_a_url_that_is_missing_is_asked_for() -> None:
    with patch.dict(os.environ), pytest.raises(ImproperlyConfigured, match="Set the DATABASE_URL"):
        os.environ.pop("DATABASE_URL", None)
        from_url(environ.Env().db_url, "DATABASE_URL")


@pytest.mark.parametrize(
    ("url", "skips_the_silent"),
    [
        ("postgres://berth@a:5432,b:5433/berth", True),
        ("postgres://berth@%2Fa,%2Fb/berth", True),
        ("postgres://berth@/berth?host=/a,/b", True),
        ("postgres://berth@a/berth", False),
        ("postgres:///berth?host=/a", False),
    ],
)
def test_no_standby_is_taken_and_of_several_servers_a_silent_one_is_skipped(
    url: str, *, skips_the_silent: bool
) -> None:
    options = to_the_primary(environ.Env.db_url_config(url))
    assert options["target_session_attrs"] == "read-write"
    assert ("connect_timeout" in options) is skips_the_silent


@pytest.mark.parametrize("name", ["DATABASE_URL", "BERTH_EMAIL_URL"])
def test_a_command_that_cannot_read_its_settings_shows_no_password(name: str) -> None:
    env = {
        "PATH": os.environ["PATH"], "BERTH_STATE_DIR": "/nonexistent", "BERTH_TRIAL": "1",
        "BERTH_SECRET_KEY": "short", "DATABASE_URL": "postgres:////nonexistent/berth",
        name: f"{'smtp' if 'EMAIL' in name else 'postgres'}://berth:hunter2/hunter3@host.example/berth",
    }  # fmt: skip
    command = [sys.executable, "manage.py", "check"]
    done = subprocess.run(command, cwd=BASE_DIR, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"{name} is no URL" in done.stderr
    assert "hunter" not in done.stderr + done.stdout


def test_settings_come_from_the_files_of_a_mounted_secret_and_the_base_url_is_a_host(tmp_path: Path) -> None:
    (tmp_path / "BERTH_SECRET_KEY").write_text(f"{GOOD['secret_key']}\n")
    (tmp_path / "DATABASE_URL").write_text("postgres:////nonexistent/file")
    (tmp_path / "..data").mkdir()
    env = {
        "PATH": os.environ["PATH"], "BERTH_STATE_DIR": "/nonexistent", "BERTH_SECRETS_DIR": str(tmp_path),
        "BERTH_BASE_URL": "https://berth.example:8443", "BERTH_ALLOWED_HOSTS": "berth-web.berth.svc",
        "DATABASE_URL": "postgres:////nonexistent/variable",
    }  # fmt: skip
    code = "from portal import settings as s; print(s.SECRET_KEY, s.ALLOWED_HOSTS, s.DATABASES['default']['NAME'])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=BASE_DIR, env=env, capture_output=True, text=True, check=False)
    expected = f"{GOOD['secret_key']} ['berth-web.berth.svc', 'berth.example'] variable"
    assert done.stdout.strip() == expected, done.stderr
