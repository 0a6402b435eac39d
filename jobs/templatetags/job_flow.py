"""What the fragments of a job's page show of its pipeline and its progress, so that each page only names the job."""

from __future__ import annotations

from typing import Any

from django import template

from accounts.rest.actors import actor_of
from jobs.models import Job
from jobs.pipeline.drawing import Picture, picture_of
from jobs.pipeline.graph import graph_of

register = template.Library()


@register.simple_tag(takes_context=True)
def pipeline_of(context: dict[str, Any], job: Job) -> Picture:
    """Return the picture of the jobs that are connected with this one, as far as the reader sees them."""
    return picture_of(graph_of(job, actor_of(context["request"])), str(job.pk))
