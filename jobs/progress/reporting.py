"""Reports of a program by the API instead of its output, and all that was reported so far."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict, Invalid, NotThere
from jobs import access
from jobs.changing import announce
from jobs.models import HOLD_UNITS, Job, Part, Series
from workloads.figures import moment

from . import taking
from .lines import NAME, PROGRESS, STEP, report_of


def report(actor: Actor, job: Job, index: int, values: Mapping[str, float], step: int | None = None) -> None:
    """Take values of a part that runs. Raise a Refusal for one that does not, and for names or values that are none."""
    access.require_manage(actor, job)
    part = part_of(job, index)
    if part.phase not in HOLD_UNITS:
        raise Conflict(
            "not_running",
            _("Part %(index)s does not run.") % {"index": index},
            _("Report values while its program runs."),
        )
    refuse_faulty(part, values)
    taking.take(job.pk, index, part.run, [(timezone.now(), report_of(values, step))])
    announce(job)


def part_of(job: Job, index: int) -> Part:
    part = job.parts.filter(index=index).first()
    if part is None:
        text = _("The job has no part %(index)s.") % {"index": index}
        raise NotThere("not_found", text, _("Parts are numbered from 0."))
    return part


def refuse_faulty(part: Part, values: Mapping[str, float]) -> None:
    faults = [
        _("“%(name)s” is no name: use at most 64 letters, digits and _ . / -") % {"name": name[:80]}
        for name in values
        if not NAME.fullmatch(name)
    ]
    faults += [
        _("The value of “%(name)s” is no finite number.") % {"name": name[:80]}
        for name, value in values.items()
        if not isfinite(value)
    ]
    if not 0 <= values.get(PROGRESS, 0) <= 1:
        faults.append(_("progress is from 0 to 1."))
    names = set(values) - {PROGRESS, STEP}
    if not faults and names - part.metrics.keys() - taking.allowed_of(part, names):
        faults.append(_("A job has at most %(most)s names.") % {"most": taking.MOST_NAMES})
    if faults:
        text = _("Some values cannot be taken.")
        raise Invalid("invalid", text, _("Correct the named values."), fields={"values": faults})


def reported(job: Job, index: int) -> dict[str, Any]:
    """Return what a part reported, as the API shows it: its series with the newest point of each at its end."""
    part = part_of(job, index)
    return {
        "index": index,
        "progress": part.progress,
        "metrics": part.metrics,
        "series": [{"name": row.name, "points": points_of(row)} for row in part.series.order_by("name")],
    }


def points_of(row: Series) -> list[dict[str, Any]]:
    points = [*row.points, *([row.newest] if row.newest and row.newest not in row.points[-1:] else [])]
    return [
        {"step": int(step), "value": value, "at": moment(datetime.fromtimestamp(at, UTC))}
        for step, value, at in points
    ]
