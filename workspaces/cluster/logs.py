"""Live log of a workspace, straight from its container: the only read of ours that asks the cluster.

Each reader holds a thread while it waits for the next line. So readers are limited, in total and per workspace:
otherwise one person could take all the threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
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
MOST_READERS_OF_ONE = 8

_threads = ThreadPoolExecutor(MOST_READERS, thread_name_prefix="log")
_counting = threading.Lock()
_readers: Counter[UUID] = Counter()  # by workspace


def _take_place(workspace_id: UUID) -> bool:
    with _counting:
        if _readers.total() >= MOST_READERS or _readers[workspace_id] >= MOST_READERS_OF_ONE:
            return False
        _readers[workspace_id] += 1
        return True


def _give_place_back(workspace_id: UUID) -> None:
    with _counting:
        _readers.subtract([workspace_id])
        if not _readers[workspace_id]:
            del _readers[workspace_id]


class ClusterAway(Refusal):
    status = 503


class Log:
    """An open log: lines with their line feed. Closing the log, from any thread, ends its reader."""

    def __init__(self, workspace_id: UUID, lines: Lines, longest_seconds: float | None) -> None:
        self._workspace_id, self._lines = workspace_id, lines
        self._longest_seconds = longest_seconds
        self._closing = threading.Lock()
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        if self._longest_seconds is not None:
            loop.call_later(self._longest_seconds, self.close)
        try:
            while (line := await loop.run_in_executor(_threads, _next, self._lines)) is not None:
                yield line + "\n"
        finally:
            self.close()

    def close(self) -> None:
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self._lines.close()
        _give_place_back(self._workspace_id)


def _next(lines: Iterator[str]) -> str | None:
    """Return the next line; None at the end, also when the cluster went silent or away."""
    try:
        return next(lines, None)
    except ClusterError:
        return None


def open_log(
    workspace: Workspace,
    *,
    container: str = "",
    tail: int = DEFAULT_TAIL,
    follow: bool = False,
    longest_seconds: float | None = None,
) -> Log:
    """Ask the cluster for the log, in a blocking request. Raise a Refusal that says why there is none."""
    if container not in ("", CONTAINER_NAME):
        text = _("A workspace has one container: “%(name)s”.") % {"name": CONTAINER_NAME}
        raise Invalid("no_such_container", text, _("Leave it out."), fields={"container": [text]})
    if not 0 <= tail <= LONGEST_TAIL:
        text = _("Ask for 0 to %(most)d lines.") % {"most": LONGEST_TAIL}
        raise Invalid("invalid_tail", text, _("Follow the log to see what comes."), fields={"tail": [text]})
    if workspace.phase in (Phase.WAITING, Phase.STOPPED):
        raise _no_log(workspace)
    if not _take_place(workspace.pk):
        raise TooMany(
            "too_many_log_readers",
            _("Too many people are reading logs at the moment."),
            _("Try again in a minute."),
            retry_after_seconds=60,
        )
    try:
        return Log(workspace.pk, _ask(workspace, tail, follow), longest_seconds)
    except BaseException:
        _give_place_back(workspace.pk)
        raise


def _ask(workspace: Workspace, tail: int, follow: bool) -> Lines:
    try:
        return api_for(workspace.pool.cluster).logs(
            workspace.tenant.namespace,
            f"{workspace.object_name}-0",
            container=CONTAINER_NAME,
            tail_lines=tail,
            follow=follow,
        )
    except ClusterError as error:
        if isinstance(error, ClusterRefused) and error.status in (400, 404):  # 400: not started yet
            raise _no_log(workspace) from None
        raise ClusterAway(
            "cluster_unavailable",
            _("The cluster does not answer at the moment."),
            _("Nothing is lost: try again in a minute."),
            retry_after_seconds=60,
        ) from None


def _no_log(workspace: Workspace) -> Conflict:
    """Conflict for a missing container, with the workspace's message, which says when there will be one."""
    doing = sentence(workspace.message_code, workspace.message_data)
    advice = hint(workspace.message_code, workspace.message_data)
    return Conflict("no_log_yet", _("There is no log at the moment. %(doing)s") % {"doing": doing}, advice)
