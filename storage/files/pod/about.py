"""Say what is in one folder, in a few lines, and end. It runs alone in a pod that inspects an adopted volume, as
`python3 -m files.about`, on the standard library of Python 3.9 or newer. It reads names, and no file.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import islice
from pathlib import Path
from typing import Any

MIB = 2**20
MOST_BYTES = 3500  # a termination message has at most 4096
MOST_READ = 10_000
ANSWER = "/dev/termination-log"


def file_system_of(folder: str, mounts: str) -> str:
    """Return the file system of the innermost mount above the folder; empty if there is none."""
    best, found = -1, ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        parts, kind = before.split(" "), after.split(" ")[0]
        place = parts[4].encode().decode("unicode_escape") if len(parts) > 4 else ""
        is_above = place in ("/", folder) or folder.startswith(place + "/")
        if place and is_above and len(place) >= best:
            best, found = len(place), kind
    return found


def about(folder: str) -> dict[str, Any]:
    """Return file system, size, use, the owner's number, and a sample of the names in the folder."""
    room = os.statvfs(folder)
    seen = Path(folder).stat()
    report: dict[str, Any] = {
        "file_system": file_system_of(folder, Path("/proc/self/mountinfo").read_text(errors="replace")),
        "size_mib": room.f_blocks * room.f_frsize // MIB,
        "used_mib": (room.f_blocks - room.f_bfree) * room.f_frsize // MIB,
        "uid": seen.st_uid,
        "names": [],
        "more": 0,
    }
    try:
        with os.scandir(folder) as entries:
            names = sorted(shown(entry) for entry in islice(entries, MOST_READ))
    except PermissionError:
        return dict(report, unreadable=True)
    for name in names:
        if len(json.dumps(dict(report, names=[*report["names"], name]))) > MOST_BYTES:
            break
        report["names"].append(name)
    return dict(report, more=len(names) - len(report["names"]))


def shown(entry: os.DirEntry[str]) -> str:
    """Return a name as JSON can have it, a folder's with a slash."""
    name = entry.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return name + "/" if entry.is_dir(follow_symlinks=False) else name


if __name__ == "__main__":
    Path(ANSWER).write_text(json.dumps(about(sys.argv[1])))
