"""A workspace's life with a clock of its own: figures of each minute, what it answers, and looks in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from monitoring.figures.store import Sample, TrackIdentity, put
from monitoring.idle.looking import look
from monitoring.models import IdlePolicy
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Event, Phase, Workspace
from workspaces.state.inside import Inside

MINUTE = timedelta(minutes=1)
# Noon of a day in the past: figures that are too old are not stored.
NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=3)
QUIET = Inside(kernels=0, terminals=0, ssh=0, keep_alive_seconds=None)
# The first look, which is the first to know what runs inside.
FIRST = NOON + timedelta(seconds=50)
ByMinute = Callable[[int], float | None]


def flat(value: float | None) -> ByMinute:
    return lambda minute: value


class Life:
    """A ready workspace since NOON, whose minutes are counted from there."""

    def __init__(
        self, cast: Cast, patch: pytest.MonkeyPatch, *, begin: datetime = NOON, **changes: Any
    ) -> None:
        self.cast, self.now, self.begin = cast, begin, begin
        self.said: list[str] = []
        patch.setattr("django.utils.timezone.now", lambda: self.now)
        self.workspace = make_workspace(cast, cast.bob, **{"ready_at": begin, **changes})
        self.answers: Callable[[int], Inside | None] = lambda minute: QUIET
        self.looks_at: Callable[[int], bool] = lambda minute: True
        self.deeds: dict[int, Callable[[], object]] = {}

    @property
    def minute(self) -> int:
        return int((self.now - self.begin) / MINUTE)

    def measures(
        self, minutes: int, *, gpu: ByMinute | None = None, cpu: ByMinute | None = None, gpus: int = 1
    ) -> None:
        """Write two figures a minute of each GPU and of the pod; None: nothing is reported then."""
        gpu, cpu = gpu or flat(0), cpu or flat(0.02)
        row = self.workspace
        assert row.run is not None
        runs, cluster = frozenset({row.run}), row.pool.cluster_id
        pod = TrackIdentity(cluster, "gpu-1", runs=runs)
        devices = [TrackIdentity(cluster, "gpu-1", f"GPU-{n}", f"GPU {n}", runs) for n in range(gpus)]
        samples = []
        for second in range(0, minutes * 60, 30):
            at, minute = self.begin.timestamp() + second, second // 60
            lines = [(pod, cpu(minute)), *((device, gpu(minute)) for device in devices)]
            samples += [Sample(of, at, use, 1000) for of, use in lines if use is not None]
        put(samples)

    def lives(self, minutes: int, *, every: int = 1) -> int | None:
        """Look every so many minutes. Return the minute in which it was stopped; None: it lives."""
        for minute in range(self.minute, minutes, every):
            self.now = self.begin + minute * MINUTE + (FIRST - NOON)
            if deed := self.deeds.get(minute):
                deed()
            if self.looks_at(minute):
                look(self.workspace.pool.cluster_id, self._ask)
            self.workspace.refresh_from_db()
            if self.workspace.phase != Phase.READY:
                return minute
        return None

    def _ask(
        self, workspaces: Sequence[Workspace], texts: Mapping[UUID, str] | None = None
    ) -> dict[UUID, Inside | None]:
        self.said += (texts or {}).values()
        return {row.run: self.answers(self.minute) for row in workspaces if row.run}

    @property
    def events(self) -> list[Event]:
        """Events since it was ready."""
        return list(self.workspace.events.filter(code__contains="idle").order_by("number"))

    @property
    def codes(self) -> list[str]:
        return [event.code for event in self.events]


def policy(**values: Any) -> IdlePolicy:
    return IdlePolicy.objects.create(**{"minutes": 20, "warning_minutes": 4, "time_zone": "UTC", **values})
