"""A test's result in words, in the reader's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from accounts.errors import Conflict
from clusters import explain
from clusters.causes.cause import Diagnosis, in_words
from monitoring.models import Validation
from quotas.models import Pool

from .manifests import DEADLINE_SECONDS, parts_of

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

# Sentence and hint by code. All other codes belong to the explainer.
OWN: dict[str, tuple[StrOrPromise, StrOrPromise]] = {
    "validation_without_image": (
        _lazy("The cluster %(cluster)s names no image that tests GPUs."),
        _lazy(
            "Fill in “Image that tests GPUs” on its page: NVIDIA's sample cuda-sample:vectoradd, or a copy of it."
        ),
    ),
    "validation_without_driver": (
        _lazy("The pool %(pool)s mounts the driver from a folder of its nodes. This test cannot do that."),
        _lazy("Launch a workspace there, and run a program on its GPU."),
    ),
    "validation_no_pool": (
        _lazy("%(node)s is in no pool with GPUs."),
        _lazy("Create a pool that its labels fit: a test asks for a GPU as the runs of a pool do."),
    ),
    "validation_no_node": (_lazy("%(node)s is not there any more."), ""),
    "validation_under_way": (
        _lazy("A test of %(node)s is under way."),
        _lazy("Its result is shown with the node."),
    ),
    "validation_no_gpu": (
        _lazy("No GPU of %(node)s is free; requests that wait for this pool: %(waiting)s."),
        _lazy("Try again when a run has ended there, or drain the node first."),
    ),
    "validation_no_room": (
        _lazy("%(node)s has no room for the test: its CPU or memory is taken, or that of its GPUs."),
        _lazy("Try again when a run has ended there."),
    ),
    "validation_passed": (_lazy("A program ran on a GPU of the node, and its result was correct."), ""),
    "validation_wrong": (
        _lazy("The program failed on a GPU of the node (exit code %(exit_code)s): %(said)s"),
        _lazy("Its log shows how far it got."),
    ),
    "validation_hangs": (
        _lazy("The program started on a GPU of the node and did not finish within 5 minutes."),
        _lazy("Look for Xids in the node's kernel log, and reset the GPU or restart the node."),
    ),
    "validation_silent": (
        _lazy("The image %(image)s ran and did not say “Test PASSED”: it is no test of GPUs."),
        _lazy("Correct “Image that tests GPUs” on the cluster's page."),
    ),
    "validation_too_long": (
        _lazy("Its pod did not start within 5 minutes."),
        _lazy("Check the events of the node, and try again."),
    ),
    "validation_job_gone": (
        _lazy("Its Job or its pod was deleted in the cluster before it ended."),
        _lazy("Start it again."),
    ),
    "validation_lost": (
        _lazy("Berth lost track of the test."),
        _lazy("The worker's log shows why."),
    ),
    "validation_cluster_away": (
        _lazy("The cluster did not answer for too long."),
        _lazy("Start it again when the cluster is back."),
    ),
}


def what_it_is() -> str:
    return _(
        "A small program runs on one free GPU of each chosen node, usually for seconds, %(minutes)d "
        "minutes at most. Running workspaces are not affected. Nobody else gets that GPU during the test. "
        "A node whose test fails gets no new runs on its GPUs."
    ) % {"minutes": DEADLINE_SECONDS // 60}


def taken(pool: Pool) -> str:
    """Return a sentence with the resources of a test in this pool."""
    resources = ", ".join(f"{name}: {amount}" for name, amount in parts_of(pool).resources.items())
    facts = {"resources": resources, "pool": pool}
    return _("It asks for %(resources)s, as a run of the pool %(pool)s does.") % facts


def refusal(why: Diagnosis) -> Conflict:
    text, advice = OWN[why.code]
    return Conflict(why.code, in_words(text, why.data), in_words(advice, why.data))


def sentence(row: Validation) -> str:
    if row.code in OWN:
        return in_words(OWN[row.code][0], row.data)
    if row.code:
        return explain.sentence(row.code, row.data)
    return _("It is in progress.") if row.ended_at is None else _("No details.")


def hint(row: Validation) -> str:
    if row.code in OWN:
        return in_words(OWN[row.code][1], row.data)
    return explain.hint(row.code, row.data) if row.code else ""
