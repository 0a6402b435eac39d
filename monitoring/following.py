"""Figures for pages that follow them, read once for all pages that ask at the same moment.

Figures arrive every few seconds from every node: a message for each would wake every page for nothing. So pages read at
fixed intervals, all of a process together (workloads/live/reads.py).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils import translation

from accounts.access import Actor
from accounts.errors import NotThere, Refusal
from monitoring.figures.series import HOLDS_SECONDS, RUN, Figures, of_workspace, window_of
from workloads.live.reads import BatchedRead
from workspaces.access import require_there
from workspaces.api.representation import Json
from workspaces.live.consumers import WORKSPACES


@dataclass(frozen=True)
class FiguresRequest:
    """Request of a page. `after`: time of the newest point that the page has; None: it has none."""

    actor: Actor
    workspace_id: UUID
    window: str
    after: int | None
    language: str


@dataclass(frozen=True)
class FiguresFrame:
    frame: str
    newest: int | None
    step_seconds: int


def is_window(text: str) -> bool:
    try:
        return text == RUN or bool(window_of(text))
    except Refusal:
        return False


def figures_json(figures: Figures, window: str, after: int | None = None) -> Json:
    """Return figures for the API and the socket; with `after`, points from that time on, as they may have changed."""
    return {
        "window": window,
        "step_seconds": figures.step_seconds,
        "series": [
            {
                "name": line.name,
                "unit": line.unit,
                "label": line.label,
                "points": line.points if after is None else [one for one in line.points if one[0] >= after],
            }
            for line in figures.series
        ],
        "message": figures.message,
        "is_simulated": figures.is_simulated,
    }


def figures_for_page(figures: Figures) -> Json:
    """Return figures for a page. All lines have the same times, so those come once."""
    points = figures.series[0].points if figures.series else []
    return {
        "times": [at for at, _value in points],
        "step_seconds": figures.step_seconds,
        "series": [
            {"name": line.name, "label": line.label, "values": [value for _at, value in line.points]}
            for line in figures.series
        ],
    }


def read_figures(requests: Sequence[FiguresRequest]) -> list[FiguresFrame | NotThere]:
    rows, sees = WORKSPACES.rows_for((one.workspace_id for one in requests), [one.actor for one in requests])
    figures: dict[tuple[UUID, str, str], Figures] = {}
    frames: dict[tuple[UUID, str, str, int | None], FiguresFrame] = {}
    found: list[FiguresFrame | NotThere] = []
    for one in requests:
        row = rows.get(one.workspace_id)
        try:
            row = require_there(one.actor, row if row and sees(one.actor, row.tenant_id) else None)
        except NotThere as refusal:
            found.append(refusal)
            continue
        key = row.pk, one.window, one.language
        if key not in figures:
            with translation.override(one.language):
                figures[key] = of_workspace(row, one.window)
        if (*key, one.after) not in frames:
            frames[*key, one.after] = _frame(figures[key], one)
        found.append(frames[*key, one.after])
    return found


def _frame(figures: Figures, request: FiguresRequest) -> FiguresFrame:
    frame = {
        "type": "figures",
        "since": request.after,
        **figures_json(figures, request.window, request.after),
    }
    return FiguresFrame(json.dumps(frame), _newest(figures), figures.step_seconds)


def _newest(figures: Figures) -> int | None:
    """Return the time up to which lines do not change: a line that comes later than others may still fill gaps."""
    ends = [max(at for at, value in line.points if value is not None) for line in figures.series]
    return max(min(ends), max(ends) - HOLDS_SECONDS) if ends else None


figures = BatchedRead(read_figures)
