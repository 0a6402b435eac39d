"""Rights that Berth's requests need, recorded while tests run: which part asks for what, and a test that shows it.

`BERTH_RECORD_RIGHTS=FILE pytest ...` adds to the file what the tests of this run asked for. What is recorded stands in
tests/clusters/used_rights.json; tests/clusters/test_permissions.py compares it with deploy/kubernetes/rbac.yaml.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType

from clusters.kinds import KINDS

REPOSITORY = Path(__file__).parents[2]

RECORDED = REPOSITORY / "tests" / "clusters" / "used_rights.json"
ROOMS = ("portal", "monitoring", "workspaces", "jobs", "workloads", "storage", "quotas", "clusters")
# Modules whose calls of Kubernetes are made in that part only; every other one runs beside the watcher's mirror.
OF_COLLECTOR = ("workloads/logs/", "clusters/log_streams.py")
OF_WORKER = (
    "monitoring/",
    "portal/",
    "quotas/pools/",
    "clusters/adding/",
    "clusters/doctor/",
)
OF_RETIRE = ("clusters/pods/retiring.py",)
# The connection itself: who asks stands above it.
CONNECTION = ("clusters/api.py", "clusters/transport.py", "clusters/connections.py", "clusters/mirror.py")

Used = dict[str, dict[str, str]]  # part -> "verb group/resource" -> id of a test


def resource_of(path: str) -> tuple[str, str, bool] | None:
    """Return group, resource and whether one object is named; None for paths that need no right of Berth's."""
    parts = path.strip("/").split("/")
    if parts[0] not in ("api", "apis") or len(parts) < (3 if parts[0] == "api" else 4):
        return None
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    if group in {"authorization.k8s.io", "authentication.k8s.io"}:
        return None  # everybody may ask about themselves
    return group, "/".join([rest[0], *rest[2:]]), len(rest) > 1


def verbs(method: str, named: bool, query: Mapping[str, object], content_type: str) -> Iterator[str]:
    """Yield the verbs of a request. An apply may create the object, and is refused without the right to do so."""
    if method == "GET":
        yield "watch" if query.get("watch") else "get" if named else "list"
    elif method == "PATCH":
        yield "patch"
        if "apply-patch" in content_type:
            yield "create"
    else:
        yield {"POST": "create", "DELETE": "delete"}[method]


def part_that_asks() -> str | None:
    """Return the part of Berth whose code makes the request; None if a test makes it by itself."""
    modules = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(f"{REPOSITORY}/"):
            modules.append(name.removeprefix(f"{REPOSITORY}/"))
        frame = frame.f_back
    own = [name for name in modules if name.startswith(tuple(f"{room}/" for room in ROOMS))]
    above = [name for name in own if not name.startswith(CONNECTION)]
    if not above:
        return None
    if any(name.startswith(OF_RETIRE) for name in above):
        return "retire"
    if any(name.startswith(OF_WORKER) for name in above):
        return "worker"
    return "collector" if any(name.startswith(OF_COLLECTOR) for name in above) else "watcher"


class Recorder:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.used: Used = json.loads(path.read_text()) if path.exists() else {}

    def heard(self, method: str, path: str, query: Mapping[str, object], content_type: str) -> None:
        found, part = resource_of(path), part_that_asks()
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
        if found is None or part is None or not test:
            return
        group, resource, named = found
        if not any(kind.group == group and kind.plural == resource.split("/")[0] for kind in KINDS.values()):
            return
        for verb in verbs(method, named, query, content_type):
            known = self.used.setdefault(part, {})
            known.setdefault(f"{verb} {group}/{resource}", test)

    def save(self) -> None:
        ordered = {part: dict(sorted(rights.items())) for part, rights in sorted(self.used.items())}
        self._path.write_text(json.dumps(ordered, indent=1) + "\n")


def record(path: Path) -> Recorder:
    """Begin to record: each request is heard just before it is sent."""
    from clusters.transport import Transport

    recorder, serialized = Recorder(path), Transport._serialized

    def heard(self, method, path, query, headers, body):  # type: ignore[no-untyped-def]
        recorder.heard(method, path, query or {}, headers.get("Content-Type", ""))
        return serialized(self, method, path, query, headers, body)

    Transport._serialized = heard  # type: ignore[method-assign]
    return recorder
