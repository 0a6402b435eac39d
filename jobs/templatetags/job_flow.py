"""Contents of the fragments of a job's page about its pipeline and progress, so that each page only names the job."""

from __future__ import annotations

from typing import Any

from django import template

from accounts.rest.actors import actor_of
from jobs.models import Job, Series
from jobs.pipeline.drawing import Picture, picture_of
from jobs.pipeline.graph import graph_of
from jobs.progress import reporting

register = template.Library()


@register.simple_tag(takes_context=True)
def pipeline_of(context: dict[str, Any], job: Job) -> Picture:
    """Return the picture of the jobs that are connected with this one, as far as the reader sees them."""
    return picture_of(graph_of(job, actor_of(context["request"])), str(job.pk))


@register.simple_tag
def percent_of(shown: dict[str, Any]) -> int:
    """Return the whole percent that is done: 100 only for all."""
    return int(shown["progress"]["fraction"] * 100)


@register.simple_tag
def reports_of(job: Job) -> dict[str, Any]:
    """Return the values that a job of one part reported, as rows and points; nothing for one of several parts."""
    if job.completions != 1:
        return {"rows": [], "points": {}}
    series = list(Series.objects.filter(part__job=job, part__index=0).order_by("name"))
    points = {row.name: reporting.points_of(row) for row in series}
    return {"rows": [_row(name, found) for name, found in points.items()], "points": points}


def _row(name: str, points: list[dict[str, Any]]) -> dict[str, str]:
    values = [point["value"] for point in points]
    words = {"latest": values[-1], "lowest": min(values), "highest": max(values), "step": points[-1]["step"]}
    return {"name": name} | {
        key: f"{value:.5g}" if key != "step" else str(value) for key, value in words.items()
    }
