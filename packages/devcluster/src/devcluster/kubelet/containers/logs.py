"""Container logs: one line each in the container runtimes' format (`TIME STREAM F text`), read back with options."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from devcluster.errors import bad_request
from devcluster.resources import Obj
from devcluster.values.clock import parse

FOLLOW_SECONDS = 0.2
Write = Callable[[bytes], Awaitable[None]]
MOST_BYTES, MOST_FILES = 10 * 2**20, 5
"""A log that grows beyond this begins anew; earlier parts stay beside it, and are not shown, as on a real node."""


class LogWriter:
    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = path
        self._file = path.open("ab")

    def line(self, stream: str, text: bytes, *, part: bool = False) -> None:
        """Write one line, or a part of a line that continues."""
        self.lines(stream, [text], part=part)

    def lines(self, stream: str, texts: Iterable[bytes], *, part: bool = False) -> None:
        """Write lines that arrived together."""
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        tag = "P" if part else "F"
        head = f"{stamp} {stream} {tag} ".encode()
        self._file.write(b"".join(head + text.rstrip(b"\n") + b"\n" for text in texts))
        self._file.flush()
        if self._file.tell() > MOST_BYTES:
            self._rotate()

    def _rotate(self) -> None:
        self._file.close()
        older = [self._path.with_name(f"{self._path.name}.{n}") for n in range(1, MOST_FILES)]
        for at, to in reversed(list(zip([self._path, *older], older, strict=False))):
            if at.exists():
                at.rename(to)
        self._file = self._path.open("ab")

    def close(self) -> None:
        self._file.close()


class PodLogs:
    """Logs of pods. `latest` returns a pod as it is now, or None once it is gone."""

    def __init__(self, folder: Path, latest: Callable[[Obj], Obj | None]):
        self._folder, self._latest = folder, latest

    def folder(self, pod: Obj, container: str) -> Path:
        uid: str = pod["metadata"]["uid"]
        return self._folder / uid / container

    def check(self, pod: Obj, query: Mapping[str, str]) -> None:
        """Refuse, in the words of the API server and the kubelet, if there is no log to show."""
        name = chosen(pod, query.get("container", ""))
        if pod["spec"].get("nodeName"):
            _attempt(pod, name, _flag(query, "previous"))

    async def stream(self, pod: Obj, query: Mapping[str, str], write: Write) -> None:
        if not pod["spec"].get("nodeName"):
            return
        left = int(query["limitBytes"]) if query.get("limitBytes") else None
        async for text in self._texts(pod, query):
            await write(text[:left])
            if left is not None:
                left -= len(text)
                if left <= 0:
                    return

    async def _texts(self, pod: Obj, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        name = chosen(pod, query.get("container", ""))
        attempt = _attempt(pod, name, _flag(query, "previous"))
        reader = _Reader(self.folder(pod, name) / f"{attempt}.log")
        since, stamps = _since(query), _flag(query, "timestamps")
        lines = reader.lines()
        if tail := query.get("tailLines"):
            lines = lines[max(len(lines) - int(tail), 0) :]
        while True:
            for line in lines:
                if shown := _shown(line, since, stamps):
                    yield shown
            if not _flag(query, "follow"):
                return
            over = not self._runs(pod, name, attempt)
            lines = reader.lines()
            if over and not lines:
                return
            if not lines:
                await asyncio.sleep(FOLLOW_SECONDS)

    def _runs(self, pod: Obj, name: str, attempt: int) -> bool:
        """Return True while this start of the container runs: a followed log ends there, even before a restart."""
        found = self._latest(pod)
        status = _status(found, name) if found else {}
        return "running" in status.get("state", {}) and status.get("restartCount", 0) == attempt


class _Reader:
    """Reader of the lines added to a log since the last call, across its rotation."""

    def __init__(self, path: Path):
        self._path, self._rest = path, b""
        self._file = path.open("rb") if path.exists() else None

    def lines(self) -> list[bytes]:
        if self._file:
            self._rest += self._file.read()
        if self._path.exists() and not self._is_current():
            self._file = self._path.open("rb")
            self._rest += self._file.read()
        *lines, self._rest = self._rest.split(b"\n")  # not by splitlines: progress bars hold carriage returns
        return lines

    def _is_current(self) -> bool:
        return self._file is not None and os.path.samestat(os.fstat(self._file.fileno()), self._path.stat())


def chosen(pod: Obj, name: str) -> str:
    """Return the container that a request means."""
    spec, pod_name = pod["spec"], pod["metadata"]["name"]
    names = [c["name"] for c in [*(spec.get("initContainers") or []), *spec["containers"]]]
    if not name and len(spec["containers"]) > 1:
        listed = " ".join(names)
        raise bad_request(f"a container name must be specified for pod {pod_name}, choose one of: [{listed}]")
    name = name or spec["containers"][0]["name"]
    if name not in names:
        raise bad_request(f"container {name} is not valid for pod {pod_name}")
    return name


def _status(pod: Obj, name: str) -> Obj:
    status = pod.get("status", {})
    for found in [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]:
        if found["name"] == name:
            return dict(found)
    return {}


def _attempt(pod: Obj, name: str, previous: bool) -> int:
    """Return the number of the container's start that is meant; refuse if there was none."""
    status, where = _status(pod, name), f'container "{name}" in pod "{pod["metadata"]["name"]}"'
    state, ended = status.get("state", {}), bool(status.get("lastState", {}).get("terminated"))
    if not status:
        raise bad_request(f"{where} is not available")
    restarts, waiting = int(status.get("restartCount", 0)), "waiting" in state
    reason = state["waiting"].get("reason", "") if waiting else ""
    if previous and not ended:
        raise bad_request(f"previous terminated {where} not found")
    if waiting and not ended:
        raise bad_request(f"{where} is waiting to start: {_WAITING.get(reason, reason)}")
    if reason == "CrashLoopBackOff":  # the count rises only after the pause
        return restarts
    return restarts - 1 if previous or waiting else restarts


_WAITING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "") in ("true", "1")


def _since(query: Mapping[str, str]) -> datetime | None:
    if seconds := query.get("sinceSeconds"):
        return datetime.now(UTC) - timedelta(seconds=int(seconds))
    return parse(query["sinceTime"]) if query.get("sinceTime") else None


def _shown(line: bytes, since: datetime | None, stamps: bool) -> bytes:
    stamp, _, tag, text = line.split(b" ", 3)
    if since and parse(stamp.decode()[:26] + "Z") < since:
        return b""
    return (stamp + b" " if stamps else b"") + text + (b"" if tag == b"P" else b"\n")


def forget_before(folder: Path, attempt: int) -> None:
    """Delete the logs of starts before `attempt`: a real node keeps only the last ended one too."""
    for path in folder.glob("*.log*"):
        if int(path.name.split(".", 1)[0]) < attempt:
            path.unlink(missing_ok=True)


def last_words(path: Path, most_lines: int = 80, most_bytes: int = 2048) -> str:
    """Return the end of a log, which becomes the message of a failed container."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    text = b"".join(_shown(line, None, stamps=False) for line in lines[-most_lines:])
    return text[-most_bytes:].decode(errors="replace")
