"""Texts of a verdict, and of what is missing. Codes of the rooms below have their texts there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from clusters import explain
from jobs import story as of_jobs
from monitoring.models import PostMortem
from quotas.models import Claim
from workloads.pods.words import Line
from workspaces.state import story as of_workspaces

LINES: dict[str, Line] = {
    "child_out_of_memory": Line(
        _("The kernel ended %(kills)s of its processes, because its memory limit was reached."),
        _("Ask for more memory, or start fewer processes: data loaders copy what they load for each worker."),
    ),
    "namespace_deleted": Line(
        _("Its team's namespace was deleted in the cluster while it ran."),
        _("Volumes are kept. An admin has to find out who deletes namespaces there; then start it again."),
    ),
    "pod_deleted": Line(
        _("Somebody deleted its pod directly in the cluster."),
        _("An admin can find out who, in the cluster's audit log. Start it again if it has not restarted."),
    ),
    "pod_vanished": Line(
        _("Its pod disappeared while it ran, and nobody saw its end."),
        _("An admin has to confirm that the pod, or its node, is really off."),
    ),
    "program_exit": Line(
        _("Its program ended with exit code %(exit_code)s."),
        _("The last lines of its log usually say why."),
    ),
    "program_signal": Line(
        _("Its program was ended by the signal %(signal)s (exit code %(exit_code)s)."),
        _(
            "SIGSEGV and SIGABRT come from the program or its libraries. SIGKILL comes from outside: compare the "
            "memory that it used with its limit."
        ),
    ),
}

GROUPS: dict[str, Line] = {
    "alike_node": Line(
        _("%(count)s runs failed or were interrupted on node %(node)s within %(days)s days."),
        _(
            "Test the GPUs of that node and look at its problems. Take it out of use until the cause is found."
        ),
    ),
    "alike_gpu": Line(
        _("%(count)s runs failed or were interrupted on GPU %(gpu)s within %(days)s days."),
        _("Test that GPU, and take it out of use until the cause is found."),
    ),
    "alike_image": Line(
        _("%(count)s runs with the image %(image)s ended in the same way within %(days)s days."),
        _("Check the image: its libraries may not fit the GPUs or the driver."),
    ),
}

MISSING = {
    "pod": _("The cluster did not report how its container ended."),
    "events": _("The cluster reported no events about its pod."),
    "log": _("No line of its log was kept."),
    "log_end": _("Its log was not read to its end, so the last lines may be missing."),
    "node": _("Its node was no longer in the cluster, so the state of the node is unknown."),
    "agent": _("The agent reported nothing about this node: GPU errors and memory are unknown."),
    "agent_silent": _("The agent of its node was silent, so what it reported may be old."),
    "oom_kills": _(
        "The agent of its node does not see memory limits: processes that the kernel ended are unknown."
    ),
    "gpus": _("Nobody reported which GPUs it had."),
}


def sentence(record: PostMortem, code: str, data: Mapping[str, Any]) -> str:
    """Return the sentence in the reader's language."""
    if (line := LINES.get(code)) is not None:
        return str(line.sentence) % data
    if explain.listed(code):
        return explain.sentence(code, data)
    if record.holder_kind == Claim.Holder.JOB:
        about = {"index": record.part, "attempt": record.attempt, "node": record.node}
        return of_jobs.sentence(code, {**about, **data})
    return of_workspaces.sentence(code, data)


def hint(record: PostMortem, code: str, data: Mapping[str, Any]) -> str:
    """Return what to change, or ""."""
    if (line := LINES.get(code)) is not None:
        return str(line.hint)
    if explain.listed(code):
        return explain.hint(code, data)
    if record.holder_kind == Claim.Holder.JOB:
        return of_jobs.hint(code, data)
    return of_workspaces.hint(code, data)


def label(code: str) -> str:
    """Return the sentence of a verdict without the data of one run."""
    if (line := LINES.get(code)) is not None:
        return str(line.sentence) % _Unsaid()
    if explain.listed(code):
        return explain.sentence(code, _Unsaid())
    known = of_jobs.LINES.get(code) or of_workspaces.LINES.get(code)
    return str(known.sentence) % _Unsaid() if known else code


def of_group(code: str, data: Mapping[str, Any]) -> tuple[str, str]:
    """Return the sentence of a group of runs that are alike, and what to do about it."""
    line = GROUPS[code]
    text = str(line.sentence) % data
    return f"{text} {label(data['verdict'])}" if "verdict" in data else text, str(line.hint)


class _Unsaid(dict[str, Any]):
    """Data of one run's sentence, which a group does not have."""

    def __missing__(self, name: str) -> str:
        return "…"
