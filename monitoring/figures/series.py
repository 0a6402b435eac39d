"""Figures for pages and API: lines over a window that ends now, on a grid of equal steps.

All lines of one answer have the same times. A value without a report is None, never zero: a gap stays a gap. Windows
are minutes, hours or days (30m, 1h, 7d), or `run`: since the workspace's last run began; `window_of` refuses others.
`label` tells lines of one name apart.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.errors import Refusal
from clusters.nodes.gpus import NodeKey
from monitoring.figures.store import SEEN_WRITTEN_EVERY
from monitoring.figures.thinning import DAY, HOUR, MINUTE
from monitoring.health.rules import is_silent
from monitoring.models import AgentState, Track
from quotas.models import Claim
from workspaces.models import Workspace

Point = tuple[int, float | None]
Steps = dict[int, tuple[float | None, ...]]  # use, memory, power and temperature by the begin of the step

# Time between two points by the longest window that uses it, in seconds.
STEPS = {15 * MINUTE: 5, HOUR: 15, 6 * HOUR: MINUTE, DAY: 5 * MINUTE, 7 * DAY: HOUR // 2, 30 * DAY: 2 * HOUR}
LONGEST = max(STEPS)
WRITTEN = re.compile(r"([1-9][0-9]{0,4})([mhd])")
DEFAULT = "1h"
RUN = "run"
SPARKLINE = (HOUR, MINUTE)
NOW = (3 * MINUTE, 15)
# Figures this close together have no gap between them: some sources report once a minute only.
HOLDS_SECONDS = 120
# In the order of the columns of SELECT.
GPU_UNITS = {"gpu_utilization": "%", "gpu_memory_used": "MiB", "gpu_power": "W", "gpu_temperature": "°C"}
POD_UNITS = {"cpu": "cores", "memory_used": "MiB"}
UNITS = GPU_UNITS | POD_UNITS
# By line and step: the mean use in thousandths, the maximum of memory, the means of power and temperature.
SELECT = """
    SELECT line, at - at %% %(step)s AS began,
        sum(use_thousandths::float8 * samples) / sum(samples) FILTER (WHERE use_thousandths IS NOT NULL) / 1000,
        max(memory_mib),
        sum(power_watts::float8 * samples) / sum(samples) FILTER (WHERE power_watts IS NOT NULL),
        sum(temperature_celsius::float8 * samples)
            / sum(samples) FILTER (WHERE temperature_celsius IS NOT NULL)
    FROM unnest(%(tracks)s::int[], %(lines)s::int[]) AS wanted (id, line)
    JOIN monitoring_figure ON track_id = wanted.id
    WHERE at >= %(since)s AND at < %(until)s
    GROUP BY line, began
"""


@dataclass(frozen=True)
class Series:
    name: str
    unit: str
    label: str
    points: list[Point]


@dataclass(frozen=True)
class Figures:
    """Lines over one window. `message` explains the lines, or why there are none."""

    series: list[Series] = field(default_factory=list)
    step_seconds: int = 0
    message: str = ""
    is_simulated: bool = False


@dataclass(frozen=True)
class Window:
    since: int
    until: int
    step_seconds: int

    @property
    def began(self) -> datetime:
        return datetime.fromtimestamp(self.since, UTC)


def window_of(text: str) -> Window:
    match = WRITTEN.fullmatch(text)
    seconds = int(match[1]) * {"m": MINUTE, "h": HOUR, "d": DAY}[match[2]] if match else 0
    if not 0 < seconds <= LONGEST:
        problem = _("Use minutes, hours or days, up to 30 days (30m, 1h, 7d), or run.")
        raise Refusal("invalid", _("There is no such window."), problem, fields={"window": [problem]})
    return _of_seconds(seconds)


def of_workspace(workspace: Workspace, window: str = DEFAULT) -> Figures:
    """Return lines for all GPUs that its runs had, and for their CPU and memory."""
    admitted = Claim.objects.filter(holder_id=workspace.pk, admitted_at__isnull=False).order_by("admitted_at")
    if window == RUN:
        runs = list(admitted.reverse()[:1])
        began = [run.admitted_at.timestamp() for run in runs if run.admitted_at]
        span = _of_seconds(math.ceil(time.time() - min(began)) if began else HOUR)
    else:
        span = window_of(window)
        runs = list(admitted.filter(Q(released_at=None) | Q(released_at__gte=span.began)))
    if runs and runs[-1].pool_id == workspace.pool_id:
        runs[-1].pool = workspace.pool  # with its cluster: both came with the workspace
    tracks = list(_tracks(span).filter(runs__overlap=[run.pk for run in runs])) if runs else []
    series = _series(tracks, span)
    agents = _agents({*_places(tracks), *((run.pool.cluster_id, run.node) for run in runs[-1:])})
    message = _about_workspace(runs, tracks, series, agents)
    return Figures(series, span.step_seconds, message, _is_simulated(tracks, agents))


def of_now(workspace: Workspace) -> tuple[Figures, bool]:
    """Return lines of the last minutes for its present run, and whether they are of its parts of shared GPUs.

    Where its part of a GPU is reported, the whole GPU is left out.
    """
    span = _ending_now(*NOW)
    runs = [Claim.objects.select_related("pool__cluster").get(pk=workspace.run)] if workspace.run else []
    tracks = list(_tracks(span).filter(runs__contains=[run.pk for run in runs])) if runs else []
    shares = [track for track in tracks if track.is_share]
    used = [track for track in tracks if track.is_share or not track.device] if shares else tracks
    series = _series(used, span)
    agents = _agents({*_places(tracks), *((run.pool.cluster_id, run.node) for run in runs)})
    message = _about_workspace(runs, used, series, agents)
    return Figures(series, span.step_seconds, message, _is_simulated(tracks, agents)), bool(shares)


def of_node(cluster_id: UUID, node: str, window: str = DEFAULT) -> Figures:
    """Return lines for each GPU of the node, whoever had it. The caller knows the node, and adds any message."""
    span = window_of(window)
    tracks = list(_tracks(span).filter(cluster=cluster_id, node=node, is_share=False).exclude(device=""))
    return Figures(_series(tracks, span), span.step_seconds)


def sparklines(workspaces: Iterable[Workspace]) -> dict[UUID, list[Point]]:
    """Return mean GPU use of each workspace's present run in the last hour, in percent; without figures, no entry."""
    span = _ending_now(*SPARKLINE)
    of_run = {workspace.run: workspace.pk for workspace in workspaces if workspace.run}
    tracks = _tracks(span).filter(runs__overlap=list(of_run), is_share=False).exclude(device="")
    pairs = [(track.pk, of_run[run]) for track in tracks for run in track.runs if run in of_run]
    owners = sorted({owner for _track, owner in pairs})
    lines = _read([(track, owners.index(owner)) for track, owner in pairs], span)
    return {owners[at]: grid(_column(steps, 0), span) for at, steps in lines.items()}


def grid(figures: Mapping[int, float], window: Window) -> list[Point]:
    """Return a point for each step. A short gap between two figures is filled, a longer one stays open."""
    step = window.step_seconds
    times = range(window.since - window.since % step, window.until, step)
    values = [figures.get(at) for at in times]
    most_quiet = HOLDS_SECONDS // step - 1
    if most_quiet > 0:
        _bridge(values, most_quiet)
    return list(zip(times, values, strict=True))


def _bridge(values: list[float | None], most_quiet: int) -> None:
    """Fill gaps of at most so many steps between two figures with the figure before."""
    last = None
    for at, value in enumerate(values):
        if value is None:
            continue
        if last is not None and 1 < at - last <= most_quiet + 1:
            values[last + 1 : at] = [values[last]] * (at - last - 1)
        last = at


# --- reading


def _of_seconds(seconds: int) -> Window:
    seconds = min(max(seconds, MINUTE), LONGEST)
    return _ending_now(seconds, next(step for most, step in STEPS.items() if seconds <= most))


def _ending_now(seconds: int, step: int) -> Window:
    now = int(time.time())
    until = now - now % step + step
    return Window(until - seconds, until, step)


def _tracks(window: Window) -> Any:
    return Track.objects.filter(seen_at__gte=window.began - SEEN_WRITTEN_EVERY).order_by(
        "node", "label", "pk"
    )


def _series(tracks: Sequence[Track], window: Window) -> list[Series]:
    """Return the lines with figures of each device of a node, whatever tracks the device consists of."""
    devices = {(track.node, track.device, track.is_share): track for track in tracks}
    numbers = {key: number for number, key in enumerate(devices)}
    pairs = [(track.pk, numbers[track.node, track.device, track.is_share]) for track in tracks]
    lines = _read(pairs, window)
    several_nodes = len({track.node for track in tracks if track.device}) > 1
    found: list[Series] = []
    of_pod: Steps = {}
    for number, track in enumerate(devices.values()):
        if track.device:
            found += _of_device(track, lines.get(number, {}), window, named_node=several_nodes)
        else:  # a run's pod is on one node at a time
            of_pod |= lines.get(number, {})
    found += _lines(POD_UNITS, "", of_pod, window)
    return [line for line in found if any(value is not None for _at, value in line.points)]


def _of_device(track: Track, steps: Steps, window: Window, *, named_node: bool) -> list[Series]:
    label = track.label
    if named_node:
        label = _("%(gpu)s on %(node)s") % {"gpu": label, "node": track.node}
    if track.is_share:
        label = _("%(gpu)s, your part") % {"gpu": label}
    return _lines(GPU_UNITS, label, steps, window)


def _lines(units: Mapping[str, str], label: str, steps: Steps, window: Window) -> list[Series]:
    """Return a line for each unit, in the order of the columns of a step."""
    return [
        Series(name, unit, label, grid(_column(steps, column), window))
        for column, (name, unit) in enumerate(units.items())
    ]


def _column(steps: Steps, column: int) -> dict[int, float]:
    return {
        began: round(value, 3) for began, values in steps.items() if (value := values[column]) is not None
    }


def _read(pairs: Sequence[tuple[int, int]], window: Window) -> dict[int, Steps]:
    """Return the steps of each line. `pairs`: tracks and the line that each belongs to."""
    if not pairs:
        return {}
    values: dict[str, Any] = {
        "tracks": [track for track, _line in pairs],
        "lines": [line for _track, line in pairs],
        "since": window.since - window.since % window.step_seconds,
        "until": window.until,
        "step": window.step_seconds,
    }
    lines: dict[int, Steps] = {}
    with connection.cursor() as cursor:
        cursor.execute(SELECT, values)
        for line, began, *figures in cursor.fetchall():
            lines.setdefault(line, {})[began] = tuple(figures)
    return lines


# --- words


def _places(tracks: Iterable[Track]) -> set[NodeKey]:
    """Return the nodes of the tracks with a GPU."""
    return {(track.cluster_id, track.node) for track in tracks if track.device}


def _agents(places: Collection[NodeKey]) -> dict[NodeKey, AgentState]:
    rows = AgentState.objects.filter(
        cluster__in={cluster for cluster, _node in places}, node__in={node for _cluster, node in places}
    )
    return {(agent.cluster_id, agent.node): agent for agent in rows} if places else {}


def _is_simulated(tracks: Iterable[Track], agents: Mapping[NodeKey, AgentState]) -> bool:
    return any(agents[place].is_simulated for place in _places(tracks) if place in agents)


def _about_workspace(
    runs: Sequence[Claim],
    tracks: Sequence[Track],
    series: Sequence[Series],
    agents: Mapping[NodeKey, AgentState],
) -> str:
    if not runs:
        return _("It did not run in this period.")
    names = {line.name for line in series}
    has_gpu_figures = bool(names & GPU_UNITS.keys())
    wants_gpu = runs[-1].units > 0 and runs[-1].pool.has_gpus
    sentences = []
    agent = agents.get((runs[-1].pool.cluster_id, runs[-1].node))
    if wants_gpu and (why := _why_no_gpu(runs[-1], agent, has_figures=has_gpu_figures)):
        sentences.append(why)
    elif not series:
        sentences.append(_nothing_yet(runs[-1]))
    devices = [track for track in tracks if track.device and not track.is_share]
    most = max((len(track.runs) for track in devices), default=0)
    if has_gpu_figures and most > 1:
        sentences.append(
            _("The GPU is shared: utilization, power and temperature are the totals of everyone on it.")
        )
    if any(track.device.startswith("MIG-") for track in devices) and "gpu_utilization" not in names:
        sentences.append(
            ngettext(
                "NVIDIA reports memory but no utilization for a MIG slice.",
                "NVIDIA reports memory but no utilization for MIG slices.",
                len(devices),
            )
        )
    return " ".join(sentences)


def _why_no_gpu(run: Claim, agent: AgentState | None, *, has_figures: bool) -> str:
    """Return why there are no GPU figures; "" if there are. `agent`: of the run's node."""
    if agent and not run.released_at and is_silent(agent, timezone.now()):
        at = date_format(timezone.localtime(agent.seen_at), "SHORT_DATETIME_FORMAT")
        text = _("The agent of %(node)s has not reported since %(time)s: the state of its GPUs is unknown.")
        return text % {"node": run.node, "time": at}
    if has_figures:
        return ""
    if not agent and not run.pool.cluster.prometheus_url:
        return _("No GPU data from %(node)s: an admin can install Berth's agent there.") % {"node": run.node}
    return _nothing_yet(run)


def _nothing_yet(run: Claim) -> str:
    if run.released_at:
        return _("No data was reported while it ran.")
    return _("No data yet: the first values arrive within a minute of the start.")
