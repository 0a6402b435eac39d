"""Next known end of what a claim waits for, said where there is no reliable estimate of its start."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.db.models import Min, Q
from django.utils.translation import gettext_lazy as _

from quotas.models import Claim
from quotas.scheduling import Reason
from quotas.when import time_in_words

# What the runs that a claim waits for have in common with it, by the code of its reason.
WAITS_FOR = {
    **dict.fromkeys(
        ("behind_larger", "behind_others", "booked", "fragmented", "no_room_for_all"), ("pool_id",)
    ),
    **{f"no_free_{what}": ("pool_id",) for what in ("cards", "cpu", "extra", "gpus", "memory", "pods")},
    **dict.fromkeys(("borrow_limit", "quota_full"), ("tenant_id", "pool_id")),
    **{f"{what}_limit_full": ("tenant_id",) for what in ("cpu", "memory", "workspaces")},
    "behind_own_tenant": ("tenant_id",),
    **dict.fromkeys(("volume_node_busy", "volume_node_full"), ("nodes",)),
    **dict.fromkeys(
        ("behind_own_request", "person_gpus_full", "person_workspaces_full"), ("user_id", "tenant_id")
    ),
}
# By the first of these fields: with an end that is known, and without.
SENTENCES = {
    "pool_id": (
        _("The first of the runs in this pool ends by %(time)s."),
        _("None of the runs in this pool has an end time."),
    ),
    "tenant_id": (
        _("The first of your team's runs ends by %(time)s."),
        _("None of your team's runs has an end time."),
    ),
    "user_id": (
        _("The first of your runs ends by %(time)s."),
        _("None of your runs has an end time."),
    ),
    "nodes": (
        _("The first of the runs on that node ends by %(time)s."),
        _("None of the runs on that node has an end time."),
    ),
}
FIELDS = ("pool_id", "tenant_id", "user_id", "nodes")


def in_words(why: Mapping[Claim, Reason], now: datetime) -> dict[UUID, str]:
    """Return a sentence for each claim, by its reason; none for reasons that wait for no run. One query."""
    claims = {claim: WAITS_FOR[reason.code] for claim, reason in why.items() if reason.code in WAITS_FOR}
    if not claims:
        return {}
    pools, tenants = ({getattr(claim, name) for claim in claims} for name in ("pool_id", "tenant_id"))
    running = Claim.objects.filter(
        Q(pool__in=pools) | Q(tenant__in=tenants), state=Claim.State.ADMITTED, ends_at__gt=now
    )
    ends = list(running.order_by().values(*FIELDS).annotate(end=Min("ends_at")))
    found = {}
    for claim, fields in claims.items():
        nodes = set(why[claim].data.get("on", ()))
        of_these = (
            one["end"]
            for one in ends
            if all(
                nodes & set(one[name]) if name == "nodes" else one[name] == getattr(claim, name)
                for name in fields
            )
        )
        end = min(of_these, default=None)
        known, unknown = SENTENCES[fields[0]]
        found[claim.pk] = str(known) % {"time": time_in_words(end, now)} if end else str(unknown)
    return found
