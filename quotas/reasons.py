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

GIVEN_BACK = _("Starts automatically when enough GPUs become free.")
STOP_SOME = _("Starts automatically when your team frees GPUs. Stop what you no longer need.")
STOP_OWN = _("Starts automatically when you free GPUs. Stop what you no longer need.")
LESS_OR_ASK = _("Request less, or ask your admin for more quota.")
SMALLER_OR_ELSEWHERE = _("Request less, or choose another pool.")

# code: (sentence, hint). Amounts come from the data, those of CPU and memory in cores and GiB (see `_for_people`).
# Plural forms use the number of GPUs rounded up (`whole_gpus`): 0.5 has no plural form.
REASONS = {
    "": (_("Checking for a free slot."), ""),
    "no_quota": (
        _("Your team has no GPUs in this pool."),
        _("Choose another pool, or ask your admin for a quota."),
    ),
    "above_quota": (
        ngettext_lazy(
            "You requested %(gpus)s GPU, but your team can use at most %(limit_gpus)s of this pool.",
            "You requested %(gpus)s GPUs, but your team can use at most %(limit_gpus)s of this pool.",
            "whole_gpus",
        ),
        LESS_OR_ASK,
    ),
    "above_cpu_limit": (
        _("You requested %(asked)s CPU cores, but your team can use at most %(limit)s in all."),
        LESS_OR_ASK,
    ),
    "above_memory_limit": (
        _("You requested %(asked)s GiB of memory, but your team can use at most %(limit)s GiB in all."),
        LESS_OR_ASK,
    ),
    "above_workspaces_limit": (
        _("Your team cannot run workspaces."),
        _("Ask your admin for more."),
    ),
    "no_node_has_gpus": (
        ngettext_lazy(
            "You requested %(gpus)s GPU, and no node of this pool has more than %(largest_gpus)s.",
            "You requested %(gpus)s GPUs on one node, and no node of this pool has more than %(largest_gpus)s.",
            "whole_gpus",
        ),
        SMALLER_OR_ELSEWHERE,
    ),
    "no_node_has_cpu": (
        _("You requested %(asked)s CPU cores, and no suitable node has more than %(largest)s."),
        SMALLER_OR_ELSEWHERE,
    ),
    "no_node_has_memory": (
        _("You requested %(asked)s GiB of memory, and no suitable node has more than %(largest)s GiB."),
        SMALLER_OR_ELSEWHERE,
    ),
    "no_node_has_extra": (
        _("It needs %(asked)s × %(resource)s, and no suitable node has more than %(largest)s."),
        SMALLER_OR_ELSEWHERE,
    ),
    "no_node_has_pods": (
        _("Other programs use all the capacity of this pool's nodes."),
        _("Choose another pool, or ask your admin."),
    ),
    "no_room_for_so_many": (
        _(
            "You requested %(nodes)s nodes of this size, and this pool has room for at most %(most)s of them at once."
        ),
        _("Request fewer nodes or smaller ones, or choose another pool."),
    ),
    "no_room_for_all": (
        _("You requested %(nodes)s nodes of this size, and there is room for %(fitting)s of them now."),
        _("Starts automatically when there is room for all at once. Request fewer nodes to start sooner."),
    ),
    "pool_closed": (
        _("This pool is out of use."),
        _(
            "Waiting requests start automatically once it is in use again. Choose another pool, or ask your admin."
        ),
    ),
    "maintenance": (
        _("Nothing new starts during maintenance."),
        _("Starts automatically afterwards. What runs is not affected."),
    ),
    "no_node_ready": (
        _("No node of this pool is ready."),
        _(
            "Starts automatically when a node is ready. Choose another pool if you cannot wait, or ask your admin."
        ),
    ),
    "budget_spent": (
        _(
            "All %(limit_gpu_hours)s GPU-hours of %(whose)s for this month are used up: nothing with GPUs "
            "starts before %(from)s (UTC)."
        ),
        _("Starts automatically then, or when an admin adds hours."),
    ),
    "ends_by_budget": (
        _("The GPU-hours of this month are used up, so it stops then. Files are kept."),
        _("Save what is only in memory. If an admin adds hours, it keeps running."),
    ),
    "quota_full": (
        _("Your team uses %(used_gpus)s of the %(limit_gpus)s GPUs of its quota. You requested %(gpus)s."),
        STOP_SOME,
    ),
    "cpu_limit_full": (
        _("With this, your team would use %(together)s CPU cores. Its limit is %(limit)s."),
        STOP_SOME,
    ),
    "memory_limit_full": (
        _("With this, your team would use %(together)s GiB of memory. Its limit is %(limit)s GiB."),
        STOP_SOME,
    ),
    "workspaces_limit_full": (
        _("Your team already runs %(limit)s workspaces, its limit."),
        STOP_SOME,
    ),
    "behind_own_tenant": (
        _("An earlier request of your team waits for the team's limit."),
        _("Starts automatically after that request. Stop what your team no longer needs."),
    ),
    "above_person_gpus": (
        ngettext_lazy(
            "You requested %(gpus)s GPU, but one person of your team can use at most %(limit_gpus)s at once.",
            "You requested %(gpus)s GPUs, but one person of your team can use at most %(limit_gpus)s at once.",
            "whole_gpus",
        ),
        LESS_OR_ASK,
    ),
    "above_person_workspaces": (
        _("People of your team cannot run workspaces."),
        _("Ask your admin for more."),
    ),
    "person_gpus_full": (
        _("You use %(used_gpus)s of the %(limit_gpus)s GPUs allowed per person. You requested %(gpus)s."),
        STOP_OWN,
    ),
    "person_workspaces_full": (
        _("You already run %(limit)s workspaces, the limit per person."),
        STOP_OWN,
    ),
    "behind_own_request": (
        _("An earlier request of yours waits for your personal limit."),
        _("Starts automatically after that request. Stop what you no longer need."),
    ),
    "borrow_limit": (
        _(
            "Your team uses %(used_gpus)s GPUs (%(own_gpus)s of its own, up to %(limit_gpus)s with "
            "borrowing). You requested %(gpus)s."
        ),
        STOP_SOME,
    ),
    "waits_for_reclaim": (
        _("GPUs that your team lent to others are returned for this by %(at)s."),
        _("Starts automatically then. The people who use them have been notified."),
    ),
    "booked": (
        _("The free GPUs here are booked from %(from)s."),
        _(
            "Starts automatically when there is room. With a lifetime that ends before then, it may start now."
        ),
    ),
    "behind_larger": (
        ngettext_lazy(
            "An earlier request for %(gpus)s GPU waits for the free capacity. Yours would delay it.",
            "An earlier request for %(gpus)s GPUs waits for the free capacity. Yours would delay it.",
            "whole_gpus",
        ),
        _("Starts automatically after that request. With a shorter lifetime it may start earlier."),
    ),
    "no_free_cards": (
        ngettext_lazy(
            "No node has %(cards)s GPU with %(card_memory_mib)s GiB of memory and %(card_cores)s%% of its cores "
            "free: the most on one node is %(free_cards)s, though %(free_memory_mib)s GiB are free in all.",
            "No node has %(cards)s GPUs with %(card_memory_mib)s GiB of memory and %(card_cores)s%% of their cores "
            "free each: the most on one node is %(free_cards)s, though %(free_memory_mib)s GiB are free in all.",
            "whole_cards",
        ),
        _("Starts automatically when one node has enough. Request less memory to start sooner."),
    ),
    "no_node_has_cards": (
        ngettext_lazy(
            "You requested %(cards)s GPU with %(card_memory_mib)s GiB of memory and %(card_cores)s%% of "
            "its cores on one node, and no node of this pool has more than %(largest_cards)s of that kind.",
            "You requested %(cards)s GPUs with %(card_memory_mib)s GiB of memory and %(card_cores)s%% of "
            "their cores on one node, and no node of this pool has more than %(largest_cards)s of them.",
            "whole_cards",
        ),
        SMALLER_OR_ELSEWHERE,
    ),
    "behind_others": (
        _("Earlier requests wait for this pool."),
        _("Starts automatically when its turn comes."),
    ),
    # Reasons why a run cannot be extended.
    "kept_for_others": (_("After that its GPUs are reserved for others."), ""),
    "out_of_budget": (_("Its GPU-hours are used up."), ""),
    "longest_runtime": (_("Your team does not allow a longer runtime."), ""),
    # Reasons why a run is preempted.
    "owner_waits": (
        _("It uses borrowed GPUs, and the team that owns them needs them."),
        _("Save what is only in memory. Files are kept, and it returns to the front of the queue."),
    ),
    "booking_begins": (
        _("It uses borrowed GPUs that are booked by someone else."),
        _("Save what is only in memory. Files are kept, and it returns to the front of the queue."),
    ),
    "no_free_gpus": (
        ngettext_lazy(
            "%(free_gpus)s GPU is free in this pool. You requested %(gpus)s.",
            "%(free_gpus)s GPUs are free in this pool. You requested %(gpus)s.",
            "whole_free_gpus",
        ),
        GIVEN_BACK,
    ),
    "fragmented": (
        _(
            "No single node has %(gpus)s GPUs free: %(free_gpus)s are free on %(nodes)s nodes, at most "
            "%(largest_free_gpus)s on one node."
        ),
        _("Starts automatically when one node has enough. Request fewer GPUs to start sooner."),
    ),
    "volume_node_full": (
        _(
            "Its files are on %(on)s, which has no room for it now: %(free_gpus)s GPUs are free there. "
            "You requested %(gpus)s."
        ),
        _("Starts automatically when there is room there. To start elsewhere, launch a new workspace."),
    ),
    "volume_node_busy": (
        _("Its files are on %(on)s, which has no room for it now."),
        _("Starts automatically when there is room there. To start elsewhere, launch a new workspace."),
    ),
    "volume_node_out": (
        _("Its files are on %(on)s, which takes nothing new now."),
        _("Starts automatically when that node is back. To start elsewhere, launch a new workspace."),
    ),
    "volume_node_small": (
        _("Its files are on %(on)s. That is too small for it, or other programs use too much of it."),
        _("Request less, or launch a new workspace."),
    ),
    "volume_elsewhere": (
        _("Its files are on %(on)s, which does not belong to this pool."),
        _("Choose a pool with that node, or launch a new workspace."),
    ),
    "volume_in_use": (
        _("“%(volume)s” is in use by %(by)s. A run that writes to it has it alone."),
        _("Starts automatically when it is free. Ask them to stop, or mount it read-only if they read, too."),
    ),
    "volume_still_attached": (
        _("The volume “%(volume)s” is still attached to %(on)s, though no run uses it there any more."),
        _(
            "Starts automatically when the node has let go of it. If that takes more than some minutes, ask an admin "
            "to look at the node."
        ),
    ),
    "volume_being_made": (
        _("The volume “%(volume)s” is being created: its files are copied first."),
        _("Starts automatically when the copy is there. No GPU is held meanwhile."),
    ),
    "no_free_cpu": (
        _("You requested %(asked)s CPU cores, and the suitable nodes have at most %(free)s free."),
        GIVEN_BACK,
    ),
    "no_free_memory": (
        _("You requested %(asked)s GiB of memory, and the suitable nodes have at most %(free)s GiB free."),
        GIVEN_BACK,
    ),
    "no_free_extra": (
        _("It needs %(asked)s × %(resource)s, and the suitable nodes have at most %(free)s free."),
        GIVEN_BACK,
    ),
    "no_free_pods": (
        _("The suitable nodes already run the maximum number of pods."),
        GIVEN_BACK,
    ),
}

# Codes about the pool, not about the request.
OF_POOL = frozenset({"", "pool_closed", "maintenance", "no_node_ready", "no_node_has_pods", "no_free_pods"})
# Codes of claims that wait for the node of their files.
TIED = frozenset(code for code in REASONS if code.startswith("volume_node_") or code == "volume_elsewhere")
WAIT_FOREVER = ("no_quota", "no_room_for_so_many", "volume_elsewhere", "volume_node_small")
# Codes of claims that cannot start until an admin or their person changes something.
NEVER = frozenset(
    code for code in REASONS if code in WAIT_FOREVER or code.startswith(("above_", "no_node_has_"))
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
    if "on" in data:
        amounts["on"] = str(_(", ")).join(data["on"])
    if "by" in data:
        amounts["by"] = str(_(", ")).join(data["by"])
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
