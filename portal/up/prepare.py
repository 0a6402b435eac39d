"""Bring tables and static files up to date, and add the demo data: in one process, so Django loads once."""

import hashlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import django
from django.conf import settings
from django.core.management import CommandError, call_command

from portal.up.plan import REPOSITORY

STATIC_INPUTS = ("static", "requirements/runtime.txt")


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    from vitals.pulse import forget_here  # needs Django's settings

    try:
        call_command("migrate", verbosity=0, interactive=False)
        forget_here()
        collect_static_files()
        call_command("seed_demo", *sys.argv[1:])
    except CommandError as refusal:
        sys.exit(str(refusal))


def collect_static_files() -> None:
    """Collect static files only if they changed: hashing and compressing them takes seconds."""
    stamp = Path(settings.STATIC_ROOT) / ".collected"
    fingerprint = digest(REPOSITORY / name for name in STATIC_INPUTS)
    if not stamp.exists() or stamp.read_text() != fingerprint:
        call_command("collectstatic", verbosity=0, interactive=False, clear=True)
        stamp.write_text(fingerprint)


def digest(inputs: Iterable[Path]) -> str:
    """Hash names, sizes and times: reading every file would cost what the check saves."""
    seen = hashlib.sha256()
    for top in inputs:
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            status = path.stat()
            seen.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return seen.hexdigest()


if __name__ == "__main__":
    main()
