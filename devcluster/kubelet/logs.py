"""Container logs: one line each in the container runtimes' format (`TIME STREAM F text`), read back with options."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from devcluster.clock import parse
from devcluster.errors import bad_request
from devcluster.resources import Obj

Write = Callable[[bytes], Awaitable[None]]
MOST_BYTES, MOST_FILES = 10 * 2**20, 5
"""A log that grows beyond this begins anew; earlier parts stay beside it, and are not shown, as on a real node."""


class LogWriter:
    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = path
        self._file = path.open("ab")

    def line(self, stream: str, text: bytes, *, part: bool = False) -> None:
        """One line, or a part of one that goes on."""
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        tag = "P" if part else "F"
        self._file.write(f"{stamp} {stream} {tag} ".encode() + text.rstrip(b"\n") + b"\n")
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
    def __init__(self, folder: Path, gone: Callable[[Obj], bool]):
        self._folder, self._gone = folder, gone

    def path(self, pod: Obj, container: str, attempt: int) -> Path:
        uid: str = pod["metadata"]["uid"]
        return self._folder / uid / container / f"{attempt}.log"

    def check(self, pod: Obj, container: str) -> str:
        """The container meant; refused with the API server's words where it is not clear or has not begun."""
        names = [c["name"] for c in pod["spec"]["containers"]]
        name = pod["metadata"]["name"]
        if not container and len(names) > 1:
            raise bad_request(f"a container name must be specified for pod {name}, choose one of: {names}")
        container = container or names[0]
        if container not in names:
            raise bad_request(f"container {container} is not valid for pod {name}")
        for status in pod.get("status", {}).get("containerStatuses", []):
            waiting = status.get("state", {}).get("waiting")
            if status["name"] == container and waiting and not status.get("lastState"):
                why = "is waiting to start: " + (waiting.get("message") or waiting.get("reason", ""))
                raise bad_request(f'container "{container}" in pod "{name}" {why}')
        return container

    async def stream(self, pod: Obj, query: Mapping[str, str], write: Write) -> None:
        container = self.check(pod, query.get("container", ""))
        attempt = _restarts(pod, container) - (1 if query.get("previous") in ("true", "1") else 0)
        path = self.path(pod, container, attempt)
        since = _since(query)
        stamps = query.get("timestamps") in ("true", "1")
        lines = (
            path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        )  # progress bars hold carriage returns
        tail = int(query["tailLines"]) if query.get("tailLines") else len(lines)
        for line in lines[max(len(lines) - tail, 0) :]:
            if shown := _shown(line, since, stamps):
                await write(shown)
        if query.get("follow") in ("true", "1"):
            await self._follow(pod, path, stamps, write)

    async def _follow(self, pod: Obj, path: Path, stamps: bool, write: Write) -> None:
        at = path.stat().st_size if path.exists() else 0
        rest = b""
        while True:
            over = self._gone(pod)
            if path.exists():
                if path.stat().st_size < at:
                    at = 0
                with path.open("rb") as file:
                    file.seek(at)
                    rest += file.read()
                    at = file.tell()
            *lines, rest = rest.split(b"\n")
            for line in lines:
                if shown := _shown(line, None, stamps):
                    await write(shown)
            if over:
                return
            await asyncio.sleep(0.2)


def _restarts(pod: Obj, container: str) -> int:
    for status in pod.get("status", {}).get("containerStatuses", []):
        if status["name"] == container:
            return int(status.get("restartCount", 0))
    return 0


def _since(query: Mapping[str, str]) -> datetime | None:
    if seconds := query.get("sinceSeconds"):
        return datetime.now(UTC) - timedelta(seconds=int(seconds))
    return parse(query["sinceTime"]) if query.get("sinceTime") else None


def _shown(line: bytes, since: datetime | None, stamps: bool) -> bytes:
    stamp, _, rest = line.partition(b" ")
    text = rest.split(b" ", 2)[-1]
    if since and parse(stamp.decode()[:26] + "Z") < since:
        return b""
    return (stamp + b" " if stamps else b"") + text + b"\n"
