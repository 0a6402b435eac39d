"""Source of the settings: the process's environment, then the file that `make up` writes for its own state.

With the file, `manage.py …` in another terminal uses the same database and cluster as a running `make up`.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent


def state_dir() -> Path:
    """The folder that holds everything a trial writes (`BERTH_STATE_DIR`, default `.dev/`)."""
    return Path(os.environ.get("BERTH_STATE_DIR") or BASE_DIR / ".dev").resolve()


def load_run_file() -> None:
    """Add the KEY=VALUE lines of `run.env` to os.environ; variables that are already set win."""
    run_file = state_dir() / "run.env"
    if not run_file.is_file():
        return
    for line in run_file.read_text().splitlines():
        key, separator, value = line.partition("=")
        if separator and not key.startswith("#"):
            os.environ.setdefault(key.strip(), value)


def from_url(read: Callable[[str], dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the settings in the variable's URL. An error names the variable alone: the value holds a password."""
    try:
        return read(name)
    except (ValueError, ImproperlyConfigured):
        if not os.environ.get(name):
            raise
        raise ImproperlyConfigured(
            f"{name} is no URL of a kind that Berth knows. In the password write / as %2F, ? as %3F, # as %23, "
            "@ as %40 and % as %25."
        ) from None
