"""Parts of a first start that are the same for every Berth: a migrated database, and collected static files.

They are made once per run of pytest and copied into each new state directory, as making them is most of a start.
"""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

from portal.up.plan import REPOSITORY
from portal.up.postgres import Server

FOLDER = "BERTH_TESTS_PREPARED"
"""Name of the variable that names the run's folder for them."""
PARTS = ("postgres", "collected")
MAKE = """
import django
django.setup()
from django.core.management import call_command
from portal.up.prepare import collect_static_files
call_command("migrate", verbosity=0, interactive=False)
collect_static_files()
"""


def copy_prepared(folder: Path) -> None:
    """Copy the parts into a new state directory; do nothing outside of pytest."""
    if FOLDER not in os.environ or (folder / "postgres").exists():
        return
    top = Path(os.environ[FOLDER])
    top.mkdir(mode=0o711, exist_ok=True)
    with (top / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (top / "made").exists():
            _make(top)
            (top / "made").touch()
    for part in PARTS:
        subprocess.run(["cp", "--archive", top / part, folder / part], check=True)


def _make(top: Path) -> None:
    server = Server(top / "postgres", top / "run")
    server.prepare()
    kept = {name: value for name, value in os.environ.items() if name != "BERTH_PLAIN_STATIC"}
    environment = kept | {"DATABASE_URL": server.url, "BERTH_STATE_DIR": str(top)}
    with (top / "postgres.log").open("wb") as log, subprocess.Popen(server.command(), stderr=log) as process:
        try:
            server.wait_until_ready(120)
            server.ensure_database()
            subprocess.run([sys.executable, "-c", MAKE], cwd=REPOSITORY, env=environment, check=True)
        finally:
            process.send_signal(signal.SIGINT)
