"""Samples of GPUs and of runs' pods, written many at once.

A sample belongs to a track: a GPU as long as the same runs had it, or the pod of a run. A track is found by a digest of
its identity, so that any number of processes can write at once without coordination.
"""

from __future__ import annotations

import json
import math
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.db import connection, transaction

from accounts.locks import locked
from monitoring.models import Track

SEEN_WRITTEN_EVERY = timedelta(minutes=10)
KEPT = timedelta(days=400)
_TRACKS = uuid.UUID("6f0b6f3e-3c5e-4c39-9a39-0c6f2f6d9b1a")
# Insert into existing tracks. The keys come a second time as an array, to show PostgreSQL how few they are.
INSERT = """
    WITH track AS (SELECT id, key, seen_at FROM monitoring_track WHERE key = ANY (%s::uuid[])),
    written AS (
        INSERT INTO monitoring_figure (track_id, at, memory_mib, use_thousandths, step_seconds, samples, power_watts,
            temperature_celsius)
        SELECT track.id, at, memory_mib, use_thousandths, 0, 1, power_watts, temperature_celsius
        FROM json_to_recordset(%s::json) AS new (key uuid, at int, memory_mib int, use_thousandths int,
            power_watts smallint, temperature_celsius smallint) JOIN track USING (key)
        ON CONFLICT DO NOTHING
    )
    SELECT key, id, extract(epoch FROM seen_at)::float8 FROM track
"""


@dataclass(frozen=True)
class TrackIdentity:
    """Identity of a sample's track. Without `device`: the pod of the one run in `runs`, whose use is in cores."""

    cluster_id: uuid.UUID
    node: str
    device: str = ""  # the UUID of a GPU or of a MIG device
    label: str = field(default="", compare=False)
    runs: frozenset[uuid.UUID] = frozenset()
    is_share: bool = False  # of a shared GPU: the part that this one run uses

    @property
    def key(self) -> uuid.UUID:
        runs = ",".join(sorted(str(run) for run in self.runs))
        return uuid.uuid5(_TRACKS, f"{self.cluster_id}/{self.node}/{self.device}/{self.is_share}/{runs}")


class Sample(NamedTuple):
    """Sample. `at`: seconds since 1970; `use`: percent of a GPU or cores of a CPU; None: not reported."""

    of: TrackIdentity
    at: float
    use: float | None = None
    memory_mib: float | None = None
    power_watts: float | None = None
    temperature_celsius: float | None = None


ByTrack = Mapping[uuid.UUID, Sequence[Sample]]  # by the track's key


def put(samples: Iterable[Sample]) -> None:
    """Write the samples. An existing figure of the same second and track stays as it is."""
    by_track = _by_track(samples)
    if not by_track:
        return
    found = _insert(by_track)
    if missing := {key: of_track for key, of_track in by_track.items() if key not in found}:
        _begin(missing)
        found |= _insert(missing)
    stale = {
        track_id: newest
        for key, (track_id, seen) in found.items()
        if (newest := _newest(by_track[key])) - seen > SEEN_WRITTEN_EVERY.total_seconds()
    }
    if stale:
        _note_seen(list(stale), datetime.fromtimestamp(max(stale.values()), UTC))


def _by_track(samples: Iterable[Sample]) -> ByTrack:
    oldest = time.time() - KEPT.total_seconds()
    found: dict[TrackIdentity, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.at > oldest:
            found[sample.of].append(sample)
    return {of.key: of_track for of, of_track in found.items()}


def _insert(by_track: ByTrack) -> dict[uuid.UUID, tuple[int, float]]:
    """Insert samples into existing tracks. Return {key: (id of the track, time of its last update)}."""
    rows = [
        {
            "key": str(key),
            "at": int(sample.at),
            "memory_mib": _whole(sample.memory_mib, 2**31),
            "use_thousandths": _whole(sample.use, 2**31, 1000),
            "power_watts": _whole(sample.power_watts, 2**15),
            "temperature_celsius": _whole(sample.temperature_celsius, 2**15),
        }
        for key, of_track in by_track.items()
        for sample in of_track
    ]
    with connection.cursor() as cursor:
        cursor.execute(INSERT, [list(by_track), json.dumps(rows)])
        return {key: (track_id, seen) for key, track_id, seen in cursor.fetchall()}


def _begin(by_track: ByTrack) -> None:
    """Create new tracks. Other processes may create the same: all use the order of the keys, to avoid a deadlock."""
    rows = [
        Track(
            key=key, cluster_id=of.cluster_id, node=of.node, device=of.device, label=of.label, runs=sorted(of.runs),
            is_share=of.is_share, seen_at=datetime.fromtimestamp(_newest(by_track[key]), UTC),
        )
        for key, of in ((key, by_track[key][0].of) for key in sorted(by_track))
    ]  # fmt: skip
    Track.objects.bulk_create(rows, ignore_conflicts=True)


def _newest(samples: Sequence[Sample]) -> float:
    return max(sample.at for sample in samples)


def _whole(value: float | None, limit: int, times: int = 1) -> int | None:
    """Return the rounded product; None if no column can hold it: drivers are known to return nonsense."""
    if value is None or not math.isfinite(value):
        return None
    number = round(value * times)
    return number if -limit <= number < limit else None


@transaction.atomic
def _note_seen(tracks: Sequence[int], seen_at: datetime) -> None:
    """Update `seen_at`. Skip locked tracks: the process that holds a lock updates it."""
    idle = locked(Track.objects.filter(pk__in=tracks), skip_busy=True)
    Track.objects.filter(pk__in=idle.values("pk")).update(seen_at=seen_at)
