"""Settings with which Berth refuses to start."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from portal.environment import BASE_DIR
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


@pytest.mark.parametrize(("trial", "starts"), [("1", True), ("0", False)])
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
