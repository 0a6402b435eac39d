"""Comparison of two answers: all of their content except names and figures that are drawn anew each time."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.cluster_contract.ownership import unplayed

Json = Any
ABSENT = "<absent>"
_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
"""The letters of names that Kubernetes draws."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_DRAWN = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(r"\b(10\.96|127\.\d+)\.\d+\.\d+\b"), "<ip>"),
    (re.compile(r"(?<=\.)[0-9a-f]{14,16}$"), "<random>"),  # the end of an event's name
    (re.compile(rf"(?<=-){_SAFE}{{8,10}}\b"), "<hash>"),
    (re.compile(rf"(?<=[a-z0-9>]-){_SAFE}{{5}}\b"), "<random>"),
    (re.compile(r"(?<=^kube-api-access-)[a-z0-9]{5}$"), "<random>"),
    (re.compile(r"\bfake-\d\b"), "<node>"),
    (re.compile(r"(?<=^default-scheduler-).+$"), "<host>"),
    (re.compile(r"(?<=current: )\d+$"), "<rv>"),
    (re.compile(r"(?<=^<ip>:)\d+$"), "<port>"),
    (re.compile(r"^\d+s$"), "<age>"),
    (re.compile(r"^-----BEGIN CERTIFICATE-----.*", re.DOTALL), "<certificate>"),
)
_OPENSHIFT = "openshift-service-ca.crt"
"""The recorded cluster's builds came from OpenShift, which publishes a certificate more than Kubernetes does."""
_PICTURE = re.compile(r"\n@@.*|(?<=Invalid value: )\{.*\}(?=: )", re.DOTALL)
"""Go's picture of a difference, or of a value, in a message."""
_MASKED = {"uid": "<uid>", "resourceVersion": "<rv>", "continue": "<continue>", "token": "<token>"}
_MASKED |= {"serverAddress": "<address>", "gitCommit": "<build>"}
_NUMBERED = {"nodePort", "healthCheckNodePort", "count"}
_REVISIONS = {"controller-revision-hash", "currentRevision", "updateRevision", "pod-template-hash"}
_KEYS = ("type", "name", "manager", "ip", "key", "groupVersion")


def plain(value: Json, key: str = "") -> Json:
    """Return the value with placeholders, as in the recording, for what differs each time."""
    if isinstance(value, dict):
        return {_drawn(k): plain(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v, key) for v in value if not _from_openshift(v) and not _told_by_a_kubelet(v)]
    if key in _MASKED:
        return _MASKED[key] if value else value
    if key == "gitTreeState":
        return "<build>"  # the recording's build did not know
    if key in _NUMBERED:
        return "<number>"
    if not isinstance(value, str):
        return value
    if key in _REVISIONS:
        return "<revision>"
    return "<time>" if _TIME.fullmatch(value) else _drawn(value)


def _from_openshift(item: Json) -> bool:
    if not isinstance(item, dict):
        return False
    about = item.get("object") or item.get("configMap") or item
    return _OPENSHIFT in (about.get("name"), about.get("metadata", {}).get("name"))


def _told_by_a_kubelet(item: Json) -> bool:
    """Return True for a kubelet's event: the recording's nodes had no kubelet, and so no such events."""
    source = item.get("source") if isinstance(item, dict) else None
    return isinstance(source, dict) and source.get("component") == "kubelet"


def _drawn(text: str) -> str:
    for pattern, placeholder in _DRAWN:
        text = pattern.sub(placeholder, text)
    return text


def differences(recorded: Json, given: Json, at: str = "") -> Iterator[tuple[str, Json, Json]]:
    """Yield (path, recorded, given) for each place where two plain answers differ."""
    recorded, given = unplayed(recorded, given)
    if isinstance(recorded, dict) and isinstance(given, dict):
        for key in {**recorded, **given}:
            yield from differences(
                recorded.get(key, ABSENT), given.get(key, ABSENT), f"{at}.{key}" if at else key
            )
    elif isinstance(recorded, list) and isinstance(given, list):
        ours, theirs = dict(_named(given)), dict(_named(recorded))
        # Except managedFields, whose order follows their times.
        if not at.endswith("managedFields") and list(theirs) != list(ours) and set(theirs) == set(ours):
            yield f"{at}.(order)", list(theirs), list(ours)
        for name in {**theirs, **ours}:
            yield from differences(theirs.get(name, ABSENT), ours.get(name, ABSENT), f"{at}[{name}]")
    elif recorded != given:
        yield (f"{at}.(picture)" if _words(recorded) == _words(given) else at), recorded, given


def _words(value: Json) -> Json:
    return _PICTURE.sub("", value) if isinstance(value, str) else value


def _named(items: list[Json]) -> Iterator[tuple[str, Json]]:
    """Yield list items by name, so that an extra item in the middle does not make all others differ."""
    seen: Counter[str] = Counter()
    for n, item in enumerate(items):
        name = _name(item) or str(n)
        seen[name] += 1
        yield (name if seen[name] == 1 else f"{name}#{seen[name]}"), item


def _name(item: Json) -> str:
    if not isinstance(item, dict):
        return ""
    if "reason" in item and "involvedObject" in item:
        return f"{item['involvedObject'].get('name')} {item['reason']}"
    if "object" in item and "type" in item:
        return f"{item['type']} {_name(item['object'])}"
    if "field" in item:
        return str(item["field"])
    if "metadata" in item:
        return str(item["metadata"].get("name", ""))
    if "manager" in item:
        return " ".join(str(item[k]) for k in ("manager", "operation", "subresource") if k in item)
    return next((str(item[k]) for k in _KEYS if item.get(k)), "")
