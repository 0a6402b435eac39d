"""Logs as rows: tests of storing and reading need no cluster."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from accounts.models import Tenant
from workloads.logs import reading, store
from workloads.logs.chunks import Entry
from workloads.logs.intake import SECOND
from workloads.logs.models import LogChunk, LogStream

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
NOON_NS = int(NOON.timestamp()) * SECOND


def make_stream(tenant: Tenant, holder: UUID | None = None, kind: str = "job", **fields: Any) -> LogStream:
    uid = str(uuid4())
    given = {"run": uuid4(), "index": 0, "attempt": 1, "namespace": tenant.namespace, "pod": f"pod-{uid}"}
    stream: LogStream = LogStream.objects.create(
        tenant=tenant,
        holder_kind=kind,
        holder_id=holder or uuid4(),
        pod_uid=uid,
        container="job",
        **(given | fields),
    )
    return stream


def write(stream: LogStream, texts: Sequence[str], *, at_ns: int = NOON_NS, step_ns: int = SECOND) -> None:
    """Store lines, the first at `at_ns`."""
    stream.refresh_from_db()
    entries = [Entry(at_ns + number * step_ns, text) for number, text in enumerate(texts)]
    assert store.append([store.Batch(stream.pk, stream.lines, entries)]) == set()


def stored(stream: LogStream) -> list[str]:
    """Return the texts of a log as its chunks have them. Fails if a line is missing or there twice."""
    texts: list[str] = []
    for chunk in LogChunk.objects.filter(stream=stream).order_by("first_line"):
        lines = reading.lines_of(chunk)
        assert chunk.first_line == len(texts) + 1
        texts += [line.text for line in lines]
        assert chunk.last_line == len(texts)
    return texts
