"""Sources of the settings: the process's environment, then files.

Files are those of a mounted Secret, and the one that `make up` writes for its own state: with it, `manage.py …` in
another terminal uses the same database and cluster as a running `make up`.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent
PART_COMMANDS = (["worker"], ["watch"], ["collect"], ["ssh_jump"])  # of manage.py; web is no command of it


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


def load_secret_files() -> None:
    """Add each file of BERTH_SECRETS_DIR to os.environ by its name; variables that are already set win."""
    folder = os.environ.get("BERTH_SECRETS_DIR", "")
    if folder and not Path(folder).is_dir():
        raise ImproperlyConfigured(f"BERTH_SECRETS_DIR is no folder: {folder}")
    for file in Path(folder).iterdir() if folder else ():
        if re.fullmatch(r"[A-Z][A-Z0-9_]*", file.name):  # a mounted Secret has others, such as ..data
            os.environ.setdefault(file.name, file.read_text().rstrip("\r\n"))


def to_the_primary(database: dict[str, Any]) -> dict[str, Any]:
    """Return options with which connections take no standby: one name may lead to it for a moment, too.

    Of several hosts in a DATABASE_URL, one that lost its power does not refuse: after three seconds the next is asked.
    """
    hosts = f"{database.get('HOST', '')},{database.get('OPTIONS', {}).get('host', '')}".strip(",")
    return {"target_session_attrs": "read-write"} | ({"connect_timeout": 3} if "," in hosts else {})


def session_name(role: str, arguments: list[str]) -> str:
    """Return the name by which PostgreSQL lists this process's sessions: a part's begins with `berth `.

    A pod's role is also set for a command that somebody runs there, such as a backup: it is not the part.
    """
    program, command = Path(arguments[0]).name, arguments[1:2]
    if role and (program != "manage.py" or command in PART_COMMANDS):
        return f"berth {role}"
    return " ".join([program, *(command if program == "manage.py" else ())])


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
