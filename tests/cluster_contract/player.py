"""Replay of a recorded scenario: all requests in order, and in between the steps that were not recorded."""

import json
import time
import urllib.error
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devcluster.testing.kube import Kube
from tests.cluster_contract.ownership import CONTROLLERS, telling, without
from tests.cluster_contract.sameness import Json, differences, plain

RECORDED = Path(__file__).with_name("recorded")
SETTLED_SECONDS = 30.0
"""How long it may take to become what was recorded: controllers work at their own pace."""
WATCH_SECONDS = 1
"""How long a watch lasts at least; it goes on while fewer events came than were recorded."""

Found = dict[str, tuple[Json, Json]]
"""Path → (recorded, given), for every place where an answer differs."""


@dataclass
class Stage:
    """State of a scenario during its replay: what the unrecorded steps may see and change."""

    cluster: Kube
    request: dict[str, Any] = field(default_factory=dict)
    """The request that comes next; may be changed where it names what is drawn anew each time."""
    answers: dict[str, Json] = field(default_factory=dict)
    """The answers so far, by note."""
    memory: dict[str, Any] = field(default_factory=dict)
    act: Callable[[], object] | None = None
    """What is done during the watch that comes next."""
    watch_seconds: int = WATCH_SECONDS


Step = Callable[[Stage], None]
Steps = dict[tuple[str, str], Step]
"""What is done before a request, by scenario and note."""


def scenario(name: str) -> list[dict[str, Any]]:
    """Return the recorded requests and answers; add the path to notes that occur twice."""
    entries: list[dict[str, Any]] = json.loads((RECORDED / f"{name}.json").read_text())
    often = Counter(e["note"] for e in entries)
    for entry in entries:
        if often[entry["note"]] > 1:
            entry["note"] += f" {entry['request']['path']}"
    return entries


def play(cluster: Kube, name: str, steps: Steps, listed: set[str]) -> dict[str, Found]:
    """Return the differences, by note. Reads are repeated until they agree, except for notes listed as different."""
    stage, found = Stage(cluster), dict[str, Found]()
    for entry in scenario(name):
        note = entry["note"]
        stage.request, stage.act, stage.watch_seconds = entry["request"], None, WATCH_SECONDS
        if step := steps.get((name, note)):
            step(stage)
        patience = 0.0 if note in listed or stage.request["method"] != "GET" else SETTLED_SECONDS
        found[note] = _compare(stage, note, plain(entry["response"]), patience)
    return found


def _compare(stage: Stage, note: str, recorded: Json, patience: float) -> Found:
    end = time.monotonic() + patience
    while True:
        given = _watch(stage, recorded) if stage.request["method"] == "WATCH" else _call(stage, note)
        found = {at: (theirs, ours) for at, theirs, ours in differences(*_comparable(stage, recorded, given))}
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.1)


def _comparable(stage: Stage, recorded: Json, given: Json) -> tuple[Json, Json]:
    """Return both answers without what depends on the speed of others."""
    recorded, given = {k: v for k, v in recorded.items() if k in given}, plain(given)
    if stage.request["method"] == "WATCH":
        return {"events": [*telling(recorded["events"])]}, {"events": [*telling(given["events"])]}
    if stage.request["method"] != "GET":
        recorded["body"], given["body"] = without(recorded["body"], given["body"], CONTROLLERS)
    return recorded, given


def _call(stage: Stage, note: str) -> Json:
    request = stage.request
    headers = dict(request.get("headers", {}))
    if request["content_type"]:
        headers["Content-Type"] = request["content_type"]
    code, body = stage.cluster.call(
        request["method"], request["path"], request["body"], headers=headers, **request["query"]
    )
    stage.answers[note] = body
    return {"status": code, "body": body}


def _watch(stage: Stage, recorded: Json) -> Json:
    path, query = stage.request["path"], stage.request["query"]
    end, wanted = time.monotonic() + SETTLED_SECONDS, _count(recorded["events"][1:])
    try:
        events = stage.cluster.watch(path, stage.act, stage.watch_seconds, **query)
        while stage.act and _count(events) < wanted and time.monotonic() < end:
            since = {"resourceVersion": _version(events) or query["resourceVersion"]}
            events += stage.cluster.watch(path, seconds=WATCH_SECONDS, **query | since)
    except urllib.error.HTTPError as error:
        return {"events": [{"status": error.code}, json.loads(error.read())]}
    return {"events": [{"status": 200}, *events]}


def _count(events: list[Json]) -> int:
    return len([*telling(plain(events))])


def _version(events: list[Json]) -> str:
    return str(events[-1]["object"]["metadata"]["resourceVersion"]) if events else ""
