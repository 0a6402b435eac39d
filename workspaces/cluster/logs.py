"""Live log of a workspace, straight from its container: the only read of ours that asks the cluster.

Each reader holds a thread while it waits for the next line. So readers are limited, in total, per workspace and per
person: otherwise one person could take all the threads. The limits hold in each web process. A container may print
faster than a web process can carry: lines go out at a pace, and an answer has a largest size.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from django.utils.translation import gettext as _

from accounts.errors import Conflict, Invalid, Refusal, TooMany
from clusters.connections import api_for
from clusters.errors import ClusterError, ClusterRefused
from clusters.transport import Lines
from workspaces.models import Phase, Workspace
from workspaces.state.story import hint, sentence

CONTAINER_NAME = "workspace"  # as pod.py names it
DEFAULT_TAIL = 500
LONGEST_TAIL = 10_000
MOST_READERS = 64
RECHECK_SECONDS = 5.0
MOST_READERS_OF_ONE = 8
MOST_READERS_OF_PERSON = 6
RETRY_SECONDS = 10
# What a reader gets at once, and per second from then on.
BURST_LINES, LINES_PER_SECOND = LONGEST_TAIL, 500
BURST_BYTES, BYTES_PER_SECOND = 8 * 2**20, 2**19
LARGEST_ANSWER_BYTES = 32 * 2**20

_threads = ThreadPoolExecutor(MOST_READERS, thread_name_prefix="log")
_counting = threading.Lock()
_readers: Counter[UUID] = Counter()  # by workspace
_people: Counter[UUID] = Counter()  # the same readers by person


def _take_place(workspace_id: UUID, person_id: UUID) -> None:
    with _counting:
        if _people[person_id] >= MOST_READERS_OF_PERSON:
            raise _too_many(
                _("You read %(count)d logs already, as many as one person may.")
                % {"count": MOST_READERS_OF_PERSON},
                _("Close one of them, and try again."),
            )
        if _readers.total() >= MOST_READERS or _readers[workspace_id] >= MOST_READERS_OF_ONE:
            raise _too_many(
                _("Too many people are reading logs at the moment."), _("Try again in a few seconds.")
            )
        _readers[workspace_id] += 1
        _people[person_id] += 1


def _give_place_back(workspace_id: UUID, person_id: UUID) -> None:
    with _counting:
        for counted, key in ((_readers, workspace_id), (_people, person_id)):
            counted[key] -= 1
            if not counted[key]:
                del counted[key]


def _too_many(message: str, hint: str) -> TooMany:
    return TooMany("too_many_log_readers", message, hint, retry_after_seconds=RETRY_SECONDS)


class ClusterAway(Refusal):
    status = 503


class Log:
    """An open log: lines with their line feed. Closing the log, from any thread, ends its reader."""

    def __init__(
        self,
        workspace_id: UUID,
        person_id: UUID,
        lines: Lines,
        longest_seconds: float | None = None,
        may_go_on: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """`may_go_on` is asked again and again; when it returns False, the log ends."""
        self._place, self._lines = (workspace_id, person_id), lines
        self._longest_seconds, self._may_go_on = longest_seconds, may_go_on
        self._closing = threading.Lock()
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        if self._longest_seconds is not None:
            loop.call_later(self._longest_seconds, self.close)
        began, count, size = loop.time(), 0, 0
        watch = asyncio.ensure_future(self._until_refused())
        try:
            while (line := await loop.run_in_executor(_threads, _next, self._lines)) is not None:
                count, size = count + 1, size + len(line) + 1
                if self._longest_seconds is not None and size > LARGEST_ANSWER_BYTES:
                    yield _cut_short()
                    return
                yield line + "\n"
                await asyncio.sleep(pause_seconds(count, size, loop.time() - began))
        finally:
            watch.cancel()
            self.close()

    async def _until_refused(self) -> None:
        """Close the log when its reader may no longer read it."""
        while self._may_go_on is not None:
            await asyncio.sleep(RECHECK_SECONDS)
            if not await self._may_go_on():
                self.close()
                return

    def close(self) -> None:
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self._lines.close()
        _give_place_back(*self._place)


def pause_seconds(count: int, size: int, elapsed: float) -> float:
    """Return the seconds to wait after `count` lines of `size` bytes in `elapsed` seconds; 0 within the pace."""
    due = max((count - BURST_LINES) / LINES_PER_SECOND, (size - BURST_BYTES) / BYTES_PER_SECOND)
    return max(0.0, due - elapsed)


def _cut_short() -> str:
    most = LARGEST_ANSWER_BYTES // 2**20
    return _("[Berth: this answer ends here, at %(most)d MiB. Ask for fewer lines.]") % {"most": most} + "\n"


def _next(lines: Iterator[str]) -> str | None:
    """Return the next line; None at the end, also when the cluster went silent or away."""
    try:
        return next(lines, None)
    except ClusterError:
        return None


def open_log(
    workspace: Workspace,
    person_id: UUID,
    *,
    container: str = "",
    tail: int = DEFAULT_TAIL,
    follow: bool = False,
    longest_seconds: float | None = None,
    may_go_on: Callable[[], Awaitable[bool]] | None = None,
) -> Log:
    """Ask the cluster for the log, in a blocking request. Raise a Refusal that says why there is none.

    With `longest_seconds` it is one answer, which has LARGEST_ANSWER_BYTES at most; else it is followed without end.
    """
    if container not in ("", CONTAINER_NAME):
        text = _("A workspace has one container: “%(name)s”.") % {"name": CONTAINER_NAME}
        raise Invalid("no_such_container", text, _("Leave it out."), fields={"container": [text]})
    if not 0 <= tail <= LONGEST_TAIL:
        text = _("Ask for 0 to %(most)d lines.") % {"most": LONGEST_TAIL}
        raise Invalid("invalid_tail", text, _("Follow the log to see what comes."), fields={"tail": [text]})
    if workspace.phase in (Phase.WAITING, Phase.STOPPED, Phase.DELETED):
        raise _no_log(workspace)
    _take_place(workspace.pk, person_id)
    try:
        return Log(workspace.pk, person_id, _ask(workspace, tail, follow), longest_seconds, may_go_on)
    except BaseException:
        _give_place_back(workspace.pk, person_id)
        raise


def _ask(workspace: Workspace, tail: int, follow: bool) -> Lines:
    name = workspace.object_name
    try:
        try:
            return _of_pod(workspace, name, tail, follow)
        except ClusterRefused as refusal:
            if refusal.status != 404:
                raise
            return _of_pod(workspace, f"{name}-0", tail, follow)  # as a StatefulSet called it
    except ClusterError as error:
        if isinstance(error, ClusterRefused) and error.status in (400, 404):  # 400: not started yet
            raise _no_log(workspace) from None
        raise ClusterAway(
            "cluster_unavailable",
            _("The cluster does not answer at the moment."),
            _("Nothing is lost: try again in a minute."),
            retry_after_seconds=60,
        ) from None


def _of_pod(workspace: Workspace, pod: str, tail: int, follow: bool) -> Lines:
    return api_for(workspace.pool.cluster).logs(
        workspace.tenant.namespace, pod, container=CONTAINER_NAME, tail_lines=tail, follow=follow
    )


def _no_log(workspace: Workspace) -> Conflict:
    """Conflict for a missing container, with the workspace's message, which says when there will be one."""
    doing = sentence(workspace.message_code, workspace.message_data)
    advice = hint(workspace.message_code, workspace.message_data)
    return Conflict("no_log_yet", _("There is no log at the moment. %(doing)s") % {"doing": doing}, advice)
