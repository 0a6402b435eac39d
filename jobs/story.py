"""Texts of a job's events. An event stores a code and figures; the text is made when it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy as _

from clusters import explain
from quotas import reasons
from workloads.pods.words import OF_RUNS, Line

MOST_NAMES = 8


LINES: dict[str, Line] = {
    **OF_RUNS,
    "submitted": Line(_("Submitted “%(name)s”: parts: %(parts)s, each with %(size)s.")),
    "admitted": Line(_("Part %(index)s: %(pool)s has room on %(node)s.")),
    "running": Line(_("Part %(index)s runs on %(node)s (attempt %(attempt)s).")),
    "part_succeeded": Line(_("Part %(index)s succeeded.")),
    "succeeded": Line(_("It succeeded.")),
    "failed": Line(
        _("Parts that failed: %(failed)s of %(parts)s."), _("Retry what failed once it is mended.")
    ),
    "cancelled": Line(_("Cancelled.")),
    "cancel_requested": Line(_("Cancelled by %(by)s.")),
    "delete_requested": Line(_("Deleted by %(by)s.")),
    "rest_stopped": Line(_("%(by)s stopped the parts that were not done: %(count)s.")),
    "rest_stopped_but": Line(_("%(by)s stopped all parts that were not done but %(kept)s: %(count)s.")),
    "retry_requested": Line(_("%(by)s lets it run again.")),
    "expired": Line(_("Its time to live has passed, so it is deleted.")),
    "deleted": Line(_("Deleted.")),
    "doing_waiting": Line(_("Waiting in the queue.")),
    "doing_starting": Line(_("Starting.")),
    "doing_running": Line(_("Parts that run: %(running)s; done: %(done)s of %(parts)s.")),
    "doing_cancelling": Line(_("Ending what still runs.")),
    # What it waits for, and what it publishes.
    "waits_for_jobs": Line(
        _("Waiting for %(names)s."),
        _("It starts by itself once they are over. It is not in the queue until then."),
    ),
    "released": Line(_("%(names)s: over, as it waited for.")),
    "not_started": Line(
        _("It was not started: it waited for “%(name)s”, which did not succeed."),
        _("Retry that job: this one then waits for it again."),
    ),
    "no_version_to_read": Line(
        _("It was not started: it reads the latest version of a dataset, and “%(name)s” published none."),
        _("Retry that job: this one then waits for it again."),
    ),
    "waits_again": Line(_("“%(name)s” runs again, so it waits again.")),
    "publishes": Line(_("Version %(number)s of “%(volume)s” is published.")),
    "not_published": Line(
        _("All parts succeeded, but no version of “%(volume)s” was published. %(reason)s"),
        _("Publish it on the page of the dataset."),
    ),
    # How an attempt ended.
    "exit_code": Line(_("Part %(index)s ended with exit code %(exit_code)s."), _("Its output says why.")),
    "rank_exit_code": Line(
        _(
            "Part %(index)s: its program on node %(node)s (rank %(rank)s) ended with exit code %(exit_code)s, so all "
            "of its programs were ended."
        ),
        _("The output of that rank says why."),
    ),
    "exit_code_is_final": Line(
        _("Part %(index)s ended with exit code %(exit_code)s, which was declared final: it is not retried.")
    ),
    "out_of_memory": Line(
        _("Part %(index)s used more memory than it asked for and was ended."), _("Ask for more memory.")
    ),
    "ran_too_long": Line(_("Part %(index)s reached its longest runtime."), _("Allow it more time.")),
    "gave_way": Line(
        _(
            "Part %(index)s had to end for others, as was known when it started. It goes on when there is room."
        )
    ),
    "ended_from_outside": Line(
        _("Part %(index)s was ended from outside (%(reason)s). It starts again; no retry is counted.")
    ),
    "ended_by_again": Line(_("Part %(index)s starts again elsewhere; no retry is counted.")),
    "ended_by_reclaim": Line(_("Part %(index)s gave its GPUs back, and waits at the front of the queue.")),
    "ended_by_cancel": Line(_("Part %(index)s was cancelled.")),
    "node_was_unwell": Line(
        _(
            "Part %(index)s failed on node %(node)s, which is out of order. It starts again; no retry is counted."
        )
    ),
    "node_drains": Line(
        _(
            "Node %(node)s is taken out of use for maintenance at %(time)s: part %(index)s starts again elsewhere then."
        ),
        _("No retry is counted. What it has not saved by then is lost."),
    ),
    "ended_by_drain": Line(
        _("Part %(index)s starts again elsewhere, because a node is taken out of use (%(node)s).")
    ),
    "end_unproven": Line(
        _("The pod of a part vanished, so nobody knows if its program has ended. Its GPUs stay reserved."),
        _("Ask an admin to confirm that its node is off."),
    ),
    "end_confirmed": Line(
        _("An admin confirmed that part %(index)s has ended. It starts again; no retry is counted.")
    ),
    "refused_again": Line(_("A part cannot be queued any more: %(reason)s")),
    # Preempted borrowed GPUs, and a budget that is spent.
    "asked_back_owner_waits": Line(
        _(
            "Part %(index)s uses borrowed GPUs, and the team that owns them needs them: it ends in %(minutes)s min."
        )
    ),
    "asked_back_booking_begins": Line(
        _("Part %(index)s uses borrowed GPUs that are booked by someone else: it ends in %(minutes)s min.")
    ),
    "spared": Line(_("The GPUs of part %(index)s are no longer needed elsewhere: it goes on.")),
    "given_back": Line(_("Part %(index)s returns its borrowed GPUs.")),
    "ends_by_budget": Line(
        _("The GPU-hours of this month are used up: part %(index)s ends in %(minutes)s min.")
    ),
    "goes_on_by_budget": Line(_("GPU-hours are available again: it goes on.")),
    "stopped_by_budget_spent": Line(
        _("The GPU-hours of this month are used up, so it is cancelled."),
        _("Retry it when an admin has added hours, or next month."),
    ),
}


def spelled(nodes: Sequence[str]) -> str:
    """Return the names of nodes for a sentence; of many, the first ones and how many there are."""
    names = list(dict.fromkeys(filter(None, nodes)))
    rest = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" (+{rest})" if rest > 0 else "")


def sentence(code: str, data: Mapping[str, Any]) -> str:
    """Return a sentence in the reader's language; "" for no code."""
    if (line := LINES.get(code)) is not None:
        return str(line.sentence) % _for_people(data) if data else str(line.sentence)
    if not code:
        return ""
    return reasons.sentence(code, data) if reasons.knows(code) else explain.sentence(code, data)


def _for_people(data: Mapping[str, Any]) -> Mapping[str, Any]:
    if "until" in data:
        return {**data, "time": date_format(localtime(datetime.fromisoformat(data["until"])), "H:i T")}
    return data


def hint(code: str, data: Mapping[str, Any]) -> str:
    """Return advice on what to do, or ""."""
    if (line := LINES.get(code)) is not None:
        return str(line.hint)
    if not code:
        return ""
    return reasons.hint(code, data) if reasons.knows(code) else explain.hint(code, data)
