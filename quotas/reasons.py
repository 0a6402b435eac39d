"""Reasons why a claim waits or is refused: a sentence and a hint, from the decision's code and data."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from math import ceil
from typing import Any

from django.template.defaultfilters import floatformat
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, ngettext_lazy

from clusters import explain
from quotas.pools import health

GIVEN_BACK = _("It starts by itself as soon as enough is given back.")
STOP_SOME = _("It starts by itself as soon as your tenant stops something. Stop what you no longer need.")
STOP_OWN = _("It starts by itself as soon as you stop something. Stop what you no longer need.")
LESS_OR_ASK = _("Ask for less, or ask your admin for more.")
SMALLER_OR_ELSEWHERE = _("Ask for less, or choose another pool.")

# code: (sentence, hint). Amounts come from the data, those of CPU and memory in cores and GiB (see `_for_people`).
# Plural forms use the number of GPUs rounded up (`whole_gpus`): 0.5 has no plural form.
REASONS = {
    "": (_("It is in the queue and is being looked at."), ""),
    "no_quota": (
        _("Your tenant has no GPUs in this pool."),
        _("Choose another pool, or ask your admin for a quota."),
    ),
    "above_quota": (
        ngettext_lazy(
            "You ask for %(gpus)s GPU, and your tenant may use %(limit_gpus)s of this pool.",
            "You ask for %(gpus)s GPUs, and your tenant may use %(limit_gpus)s of this pool.",
            "whole_gpus",
        ),
        LESS_OR_ASK,
    ),
    "above_cpu_limit": (
        _("You ask for %(asked)s CPU cores, and your tenant may use %(limit)s in all."),
        LESS_OR_ASK,
    ),
    "above_memory_limit": (
        _("You ask for %(asked)s GiB of memory, and your tenant may use %(limit)s GiB in all."),
        LESS_OR_ASK,
    ),
    "above_workspaces_limit": (
        _("Your tenant may not run workspaces."),
        _("Ask your admin for more."),
    ),
    "no_node_has_gpus": (
        ngettext_lazy(
            "You ask for %(gpus)s GPU, and no node of this pool can give more than %(largest_gpus)s.",
            "You ask for %(gpus)s GPUs on one node, and no node of this pool can give more than %(largest_gpus)s.",
            "whole_gpus",
        ),
        SMALLER_OR_ELSEWHERE,
    ),
    "no_node_has_cpu": (
        _("You ask for %(asked)s CPU cores, and no node that suits can give more than %(largest)s."),
        SMALLER_OR_ELSEWHERE,
    ),
    "no_node_has_memory": (
        _("You ask for %(asked)s GiB of memory, and no node that suits can give more than %(largest)s GiB."),
        SMALLER_OR_ELSEWHERE,
    ),
    "no_node_has_pods": (
        _("The nodes of this pool are full of other programs."),
        _("Choose another pool, or ask your admin."),
    ),
    "pool_closed": (
        _("This pool is out of use."),
        _("What waits starts by itself once it is in use again. Choose another pool, or ask your admin."),
    ),
    "no_node_ready": (
        _("No node of this pool is ready."),
        _("It starts by itself when one is. Choose another pool if you cannot wait, or ask your admin."),
    ),
    "budget_spent": (
        _(
            "All %(limit_gpu_hours)s GPU-hours that %(whose)s has this month are spent: "
            "nothing new that uses GPUs starts before %(from)s (UTC)."
        ),
        _("It starts by itself then, or as soon as an admin adds hours."),
    ),
    "ends_by_budget": (
        _("The GPU-hours of this month are spent, so it stops then. Files are kept."),
        _("Save what is only in memory. An admin can add hours: it goes on then."),
    ),
    "quota_full": (
        _(
            "Your tenant holds %(used_gpus)s of the %(limit_gpus)s GPUs of its quota, and you ask for %(gpus)s."
        ),
        STOP_SOME,
    ),
    "cpu_limit_full": (
        _("Your tenant would use %(together)s CPU cores with this, and may use %(limit)s in all."),
        STOP_SOME,
    ),
    "memory_limit_full": (
        _("Your tenant would use %(together)s GiB of memory with this, and may use %(limit)s GiB in all."),
        STOP_SOME,
    ),
    "workspaces_limit_full": (
        _("Your tenant runs %(limit)s workspaces, as many as it may at once."),
        STOP_SOME,
    ),
    "behind_own_tenant": (
        _("An earlier request of your tenant waits for the tenant's own limit."),
        _("It starts by itself after that one. Stop what your tenant no longer needs."),
    ),
    "above_person_gpus": (
        ngettext_lazy(
            "You ask for %(gpus)s GPU, and one person of your tenant may use %(limit_gpus)s at once.",
            "You ask for %(gpus)s GPUs, and one person of your tenant may use %(limit_gpus)s at once.",
            "whole_gpus",
        ),
        LESS_OR_ASK,
    ),
    "above_person_workspaces": (
        _("People of your tenant may not run workspaces."),
        _("Ask your admin for more."),
    ),
    "person_gpus_full": (
        _("You hold %(used_gpus)s of the %(limit_gpus)s GPUs that one person may use, and ask for %(gpus)s."),
        STOP_OWN,
    ),
    "person_workspaces_full": (
        _("You run %(limit)s workspaces, as many as one person may at once."),
        STOP_OWN,
    ),
    "behind_own_request": (
        _("An earlier request of yours waits for your own limit."),
        _("It starts by itself after that one. Stop what you no longer need."),
    ),
    "borrow_limit": (
        _(
            "Your tenant holds %(used_gpus)s GPUs: of its own %(own_gpus)s, and with what it may borrow "
            "%(limit_gpus)s. You ask for %(gpus)s."
        ),
        STOP_SOME,
    ),
    "waits_for_reclaim": (
        _("GPUs that your tenant lent to others come back for this by %(at)s."),
        _("It starts by itself then. Those who use them have been told."),
    ),
    "booked": (
        _("What is free here is booked from %(from)s on."),
        _(
            "It starts by itself when there is room. Give it a lifetime that ends before, and it may start now."
        ),
    ),
    "behind_larger": (
        ngettext_lazy(
            "An earlier request for %(gpus)s GPU waits for what is free, and would be delayed by yours.",
            "An earlier request for %(gpus)s GPUs waits for what is free, and would be delayed by yours.",
            "whole_gpus",
        ),
        _("It starts by itself after that one. With a shorter lifetime it may start before."),
    ),
    "no_free_cards": (
        ngettext_lazy(
            "No node has %(cards)s GPU with %(card_memory_mib)s GiB of memory and %(card_cores)s%% of its cores "
            "free: the most on one node is %(free_cards)s, though %(free_memory_mib)s GiB are free in all.",
            "No node has %(cards)s GPUs with %(card_memory_mib)s GiB of memory and %(card_cores)s%% of their cores "
            "free each: the most on one node is %(free_cards)s, though %(free_memory_mib)s GiB are free in all.",
            "whole_cards",
        ),
        _("It starts by itself when one node has enough. Ask for less memory to start sooner."),
    ),
    "no_node_has_cards": (
        ngettext_lazy(
            "You ask for %(cards)s GPU with %(card_memory_mib)s GiB of memory and %(card_cores)s%% of its cores "
            "on one node, and no node of this pool can give more than %(largest_cards)s of that kind.",
            "You ask for %(cards)s GPUs with %(card_memory_mib)s GiB of memory and %(card_cores)s%% of their cores "
            "on one node, and no node of this pool can give more than %(largest_cards)s of them.",
            "whole_cards",
        ),
        SMALLER_OR_ELSEWHERE,
    ),
    "behind_others": (
        _("Earlier requests wait for this pool."),
        _("It starts by itself when its turn comes."),
    ),
    # Reasons why a run cannot be extended.
    "kept_for_others": (_("From then on its GPUs are kept for others."), ""),
    "out_of_budget": (_("The GPU-hours that it runs on are spent."), ""),
    "longest_runtime": (_("No run of its tenant goes on for longer."), ""),
    # Reasons why a run is preempted.
    "owner_waits": (
        _("It runs on borrowed GPUs, and a tenant that owns them needs them."),
        _("Save what is only in memory. Files are kept, and it waits in front of the queue to go on."),
    ),
    "booking_begins": (
        _("It runs on borrowed GPUs, which somebody has booked."),
        _("Save what is only in memory. Files are kept, and it waits in front of the queue to go on."),
    ),
    "no_free_gpus": (
        ngettext_lazy(
            "%(free_gpus)s GPU is free in this pool, and you ask for %(gpus)s.",
            "%(free_gpus)s GPUs are free in this pool, and you ask for %(gpus)s.",
            "whole_free_gpus",
        ),
        GIVEN_BACK,
    ),
    "fragmented": (
        _(
            "No node has %(gpus)s GPUs free at once: %(free_gpus)s are free, but on %(nodes)s nodes, "
            "the most on one being %(largest_free_gpus)s."
        ),
        _("It starts by itself when one node has enough. Ask for fewer GPUs to start sooner."),
    ),
    "no_free_cpu": (
        _("You ask for %(asked)s CPU cores, and the nodes that suit have at most %(free)s free."),
        GIVEN_BACK,
    ),
    "no_free_memory": (
        _("You ask for %(asked)s GiB of memory, and the nodes that suit have at most %(free)s GiB free."),
        GIVEN_BACK,
    ),
    "no_free_pods": (
        _("The nodes that suit hold as many programs as they may."),
        GIVEN_BACK,
    ),
}

# Codes about the pool, not about the request.
OF_POOL = frozenset({"", "pool_closed", "no_node_ready", "no_node_has_pods", "no_free_pods"})
# Codes of claims that cannot start until an admin or their person changes something.
NEVER = frozenset(
    code for code in REASONS if code == "no_quota" or code.startswith(("above_", "no_node_has_"))
)
# Data that select a plural form.
WHOLE = ("gpus", "free_gpus", "cards")
# Data that are a time, by code.
AT_A_TIME = {"waits_for_reclaim": "at", "booked": "from"}


def knows(code: str) -> bool:
    return code in REASONS


def sentence(code: str, data: Mapping[str, Any]) -> str:
    """Return the sentence. Unknown codes are the cluster's, which sent the claim back to the queue."""
    if not knows(code):
        return explain.sentence(code, dict(data))
    amounts = {name: value for name, value in data.items() if name != "out"}
    amounts |= {f"whole_{name}": ceil(data[name]) for name in WHOLE if name in data}
    return " ".join(
        [str(REASONS[code][0] % _for_people(code, amounts)), *health.words(data.get("out") or {})]
    )


def hint(code: str, data: Mapping[str, Any]) -> str:
    if not knows(code):
        return explain.hint(code, dict(data))
    return str(REASONS[code][1])


def in_queue(code: str, data: Mapping[str, Any], ahead: int) -> dict[str, str]:
    """Return a reason as pages and the API show it beside the position in the queue."""
    message = sentence(code, data)
    if code == "behind_others" and ahead:
        message = ngettext(
            "%(ahead)s request is ahead of yours.", "%(ahead)s requests are ahead of yours.", ahead
        ) % {"ahead": ahead}
    return {"code": code or "queued", "message": message, "hint": hint(code, data)}


def _for_people(code: str, data: Mapping[str, Any]) -> dict[str, Any]:
    if code == "budget_spent":
        hours, day = floatformat(data["limit_gpu_hours"], "-2"), date.fromisoformat(data["from"])
        return {**data, "limit_gpu_hours": hours, "from": date_format(day, "DATE_FORMAT")}
    if code in AT_A_TIME:
        return {**data, AT_A_TIME[code]: _moment(data[AT_A_TIME[code]])}
    if "cards" in code:
        mib = {name: _rounded(amount / 1024) for name, amount in data.items() if name.endswith("memory_mib")}
        return {**data, **mib}
    divisor = 1000 if "cpu" in code else 1024 if "memory" in code else 0
    if not divisor:
        return dict(data)
    return {name: _rounded(amount / divisor) for name, amount in data.items()}


def _rounded(amount: float) -> str:
    return f"{amount:.2f}".rstrip("0").rstrip(".")


def _moment(iso: str) -> str:
    return date_format(timezone.localtime(datetime.fromisoformat(iso)), str(_("j M Y, H:i T")))
