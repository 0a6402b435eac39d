"""The collector: follows the logs of Berth's own pods in every cluster, and stores their lines.

One event loop reads all logs; a thread for each cluster follows its pods, and one thread writes. One process leads, by
a lock that dies with its connection, and others stand by. Nothing is remembered: a new leader goes on after the last
stored line of each log.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar
from uuid import UUID

from django.db import DatabaseError, InterfaceError, close_old_connections, connection

from clusters.api import Api
from clusters.connections import api_for
from clusters.errors import ClusterError
from clusters.labels import instance_selector
from clusters.log_streams import LogStreams
from clusters.models import Cluster
from clusters.transport import Json
from clusters.watch.leadership import Leadership
from clusters.watch.watching import Changed, Follower, Listed, Lost, Step
from vitals.pulse import Pulse

from . import measures, retention, store
from .chunks import size_of
from .following import Following, Known
from .models import LogStream
from .sources import Pod, describe, pod_of
from .store import Batch

log = logging.getLogger(__name__)

LOCK = 0x62657274685F6C  # "berth_l"
STANDBY_SECONDS = 1.0
# Lines are stored so often; sooner if much waits.
STORE_SECONDS = 0.5
SHORTEST_PAUSE_SECONDS = 0.05
CLUSTERS_SECONDS = 5.0
KEEP_SECONDS = 600.0
STOP_SECONDS = 1.5
# Logs of one transaction: it must not hold up those that wait.
MOST_AT_ONCE = 200

T = TypeVar("T")


async def collect(stopped: asyncio.Event) -> None:
    """Lead whenever no other process does, until `stopped` is set."""
    leadership, database = Leadership(LOCK), Database()
    try:
        while not stopped.is_set():
            if await database.call(leadership.take):
                log.info("this process collects logs")
                await _lead(leadership, database, stopped)
            else:
                await _pause(stopped, STANDBY_SECONDS)
    finally:
        await database.call(leadership.give_up)


async def _lead(leadership: Leadership, database: Database, stopped: asyncio.Event) -> None:
    collector = Collector(database)
    try:
        while not stopped.is_set() and await database.call(leadership.still_held):
            await collector.step()
            await collector.pause(stopped)
    finally:
        await collector.stop()


async def _pause(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


class Database:
    """The one thread that uses the database."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log store")

    async def call(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, _with_database, work, *arguments
        )


def _with_database(work: Callable[..., T], *arguments: Any) -> T:
    if not connection.in_atomic_block:
        close_old_connections()
    return work(*arguments)


class Collector:
    """Collection of all logs of all clusters, while this process leads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clusters: dict[UUID, ClusterLogs] = {}
        self._pulse = Pulse("collector")  # beats while leading only
        self._hurried = asyncio.Event()
        self._rows_at = self._kept_at = -KEEP_SECONDS
        self._keeping: asyncio.Task[None] | None = None

    async def step(self) -> None:
        """Store what was read. Now and then look for new clusters, and delete what is not kept any more."""
        await self._database.call(self._pulse.step)
        now = time.monotonic()
        if now - self._rows_at >= CLUSTERS_SECONDS:
            self._rows_at = now
            await self._follow_rows()
        if now - self._kept_at >= KEEP_SECONDS and (self._keeping is None or self._keeping.done()):
            self._kept_at = now
            self._keeping = asyncio.create_task(asyncio.to_thread(_keep))
        await self.store()

    async def pause(self, stopped: asyncio.Event) -> None:
        await asyncio.sleep(SHORTEST_PAUSE_SECONDS)
        if not stopped.is_set():
            await _pause(self._hurried, STORE_SECONDS - SHORTEST_PAUSE_SECONDS)
        self._hurried.clear()

    async def store(self) -> None:
        """Store what waits. If the database is away, it waits on."""
        batches = {
            batch.stream: (logs, batch)
            for cluster in self._clusters.values()
            for logs in cluster.followed()
            if (batch := logs.batch()) is not None
        }
        keys = list(batches)
        for begin in range(0, len(keys), MOST_AT_ONCE):
            some = [batches[key] for key in keys[begin : begin + MOST_AT_ONCE]]
            try:
                stale = await self._database.call(store.append, [batch for _, batch in some])
            except (DatabaseError, InterfaceError) as error:
                log.warning("lines of logs wait, the database is away: %s", error)
                await self._database.call(connection.close)
                return
            for logs, batch in some:
                if batch.stream in stale:
                    logs.forget()
                else:
                    logs.kept(batch)
                    _count(batch)

    async def _follow_rows(self) -> None:
        """Begin and end with clusters that were added, changed or removed meanwhile."""
        try:
            rows = {row.pk: row for row in await self._database.call(lambda: list(Cluster.objects.all()))}
        except (DatabaseError, InterfaceError) as error:
            log.warning("the database is away: %s", error)
            await self._database.call(connection.close)
            return
        apis: dict[UUID, Api] = {}
        for pk, row in rows.items():
            with suppress(ClusterError):  # its settings allow no connection: tried again
                apis[pk] = api_for(row)
        for pk, logs in list(self._clusters.items()):
            if apis.get(pk) is not logs.api:  # another server, or a kubeconfig with another token
                await self._clusters.pop(pk).stop()
        for pk in apis.keys() - self._clusters.keys():
            labels = await self._database.call(instance_selector)
            self._clusters[pk] = ClusterLogs(rows[pk], apis[pk], labels, self._recall, self._hurried.set)

    async def _recall(self, pod: Pod) -> Known | None:
        return await self._database.call(recall, pod)

    async def stop(self) -> None:
        """Store what was read so far, and end."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.store(), STOP_SECONDS)
        for logs in self._clusters.values():
            await logs.stop()


class ClusterLogs:
    """Logs of one cluster: a thread follows its pods, the event loop their logs."""

    def __init__(
        self,
        cluster: Cluster,
        api: Api,
        labels: dict[str, str],
        recall: Callable[[Pod], Any],
        hurry: Callable[[], None],
    ) -> None:
        self.cluster, self.api = cluster, api
        self._streams = LogStreams(api)
        self._recall, self._hurry = recall, hurry
        self._logs: dict[str, Following] = {}
        self._done: dict[str, None] = {}  # pods whose log is whole
        self._loop = asyncio.get_running_loop()
        self._follower = Follower(lambda: api, "Pod", labels, pod_of)
        self._thread = threading.Thread(target=self._watch, name=f"pods of {cluster.slug}", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._follower.stopped.is_set():
            try:
                for step in self._follower.infinite():
                    self._loop.call_soon_threadsafe(self._hear, step)
            except RuntimeError:  # the loop has ended
                return
            except Exception:
                log.exception("%s: a fault, listing its pods anew", self.cluster.slug)
                self._follower.stopped.wait(STANDBY_SECONDS)

    def _hear(self, step: Step) -> None:
        if isinstance(step, Lost):
            log.warning("pods of %s: %s", self.cluster.slug, step.error)
        elif isinstance(step, Listed):
            found = {pod.uid: pod for pod in step.found if pod is not None}
            for pod in found.values():
                self._take(pod)
            self._done = {uid: None for uid in self._done if uid in found}
        elif isinstance(step, Changed):
            self._changed(step.change, step.body)

    def _changed(self, change: str, body: Json) -> None:
        uid = body["metadata"]["uid"]
        if change == "DELETED":
            self._done.pop(uid, None)
        elif (pod := pod_of(body)) is not None:
            self._take(pod)

    def _take(self, pod: Pod) -> None:
        """Follow a pod's log, or tell who follows it. A deleted pod's log ends by itself: the cluster answers 404."""
        if (logs := self._logs.get(pod.uid)) is not None:
            logs.hear(pod)
        elif pod.is_placed and pod.uid not in self._done:
            logs = self._logs[pod.uid] = Following(pod, self._streams, self._recall, self._hurry)
            measures.FOLLOWED.add(1)
            logs.start()

    def followed(self) -> list[Following]:
        """Return the logs that are followed, without those that are whole."""
        for uid, logs in list(self._logs.items()):
            if logs.is_done:
                self._end(uid)
        return list(self._logs.values())

    def _end(self, uid: str) -> None:
        self._logs.pop(uid).stop()
        self._done[uid] = None
        measures.FOLLOWED.add(-1)

    async def stop(self) -> None:
        self._follower.stop()
        for uid in list(self._logs):
            self._end(uid)
        await self._streams.close()


def recall(pod: Pod) -> Known | None:
    """Return what is stored of a pod's log. Make its row if it is missing; None if nobody knows the pod."""
    row = LogStream.objects.filter(pod_uid=pod.uid, container=pod.container).first()
    if row is None:
        source = describe(pod)
        if source is None:
            return None
        row, _ = LogStream.objects.get_or_create(
            pod_uid=pod.uid,
            container=pod.container,
            defaults={
                "tenant_id": source.tenant_id,
                "holder_kind": pod.holder_kind,
                "holder_id": pod.holder_id,
                "run": pod.run,
                "index": source.index,
                "attempt": source.attempt,
                "namespace": pod.namespace,
                "pod": pod.name,
            },
        )
    return Known(row.pk, row.lines, row.last_ns, row.ended_at is not None, store.stored_of(row))


def _count(batch: Batch) -> None:
    measures.LINES.add(len(batch.entries))
    measures.BYTES.add(sum(size_of(entry.text) for entry in batch.entries))
    measures.DROPPED.add(batch.dropped)


def _keep() -> None:
    """Delete what is not kept, on a connection of its own: lines are stored meanwhile."""
    try:
        retention.keep()
    except Exception:
        log.exception("the retention of logs failed: tried again later")
    finally:
        connection.close()
