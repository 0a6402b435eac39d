"""GPU use of a workspace in the last hour, as a line of a few pixels and as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils.translation import gettext as _

from accounts.access import Actor
from monitoring.figures.series import Point
from monitoring.figures.series import sparklines as lines_of
from workspaces import access

# The maximum of the first page.
MOST = 50
WIDTH, HEIGHT = 96, 20


@dataclass(frozen=True)
class Spark:
    """Small line. `path` fits a box of WIDTH by HEIGHT; a gap in the figures is a gap in the line."""

    workspace_id: UUID
    path: str
    words: str


def of(actor: Actor, ids: Iterable[str]) -> list[Spark]:
    """Return the lines of workspaces that the actor may see; none for workspaces without figures."""
    wanted = [pk for pk in map(_uuid, ids) if pk][:MOST]
    rows = access.visible(actor).filter(pk__in=wanted, deleted_at=None)
    return [spark(pk, points) for pk, points in lines_of(rows).items() if _told(points)]


def spark(workspace_id: UUID, points: Sequence[Point]) -> Spark:
    told = _told(points)
    words = _("GPU %(now)s%% busy, %(mean)s%% over the last hour") % {
        "now": round(told[-1]),
        "mean": round(sum(told) / len(told)),
    }
    return Spark(workspace_id, path_of(points), words)


def path_of(points: Sequence[Point]) -> str:
    """Return an SVG path. A stroke starts again after a gap; a figure between two gaps is a dot."""
    step = WIDTH / max(1, len(points) - 1)
    path, pen = [], "M"
    for number, (_at, value) in enumerate(points):
        if value is None:
            pen = "M"
            continue
        y = HEIGHT - 1 - (HEIGHT - 2) * min(value, 100) / 100
        path.append(f"{pen}{number * step:.1f} {y:.1f}" + ("h0" if pen == "M" else ""))
        pen = "L"
    return "".join(path)


def _told(points: Sequence[Point]) -> list[float]:
    return [value for _at, value in points if value is not None]


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
