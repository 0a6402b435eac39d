"""Source of the settings: the process's environment, then the file that `make up` writes for its own state.

With the file, `manage.py …` in another terminal uses the same database and cluster as a running `make up`.
"""

import os
from pathlib import Path

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
