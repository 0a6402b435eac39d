"""Next known end of what a claim waits for, said where there is no reliable estimate of its start."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.db.models import Min, Q
from django.utils.translation import gettext_lazy as _

from quotas.models import Claim
from quotas.when import time_in_words

# What the runs that a claim waits for have in common with it, by the code of its reason.
IN_POOL = ("pool_id",)
OF_TENANT = ("tenant_id",)
OF_TENANT_IN_POOL = ("tenant_id", "pool_id")
OWN = ("user_id", "tenant_id")
WAITS_FOR = {
    "behind_larger": IN_POOL,
    "behind_others": IN_POOL,
    "booked": IN_POOL,
    "fragmented": IN_POOL,
    "no_free_cards": IN_POOL,
    "no_free_cpu": IN_POOL,
    "no_free_gpus": IN_POOL,
    "no_free_memory": IN_POOL,
    "no_free_pods": IN_POOL,
    "borrow_limit": OF_TENANT_IN_POOL,
    "quota_full": OF_TENANT_IN_POOL,
    "behind_own_tenant": OF_TENANT,
    "cpu_limit_full": OF_TENANT,
    "memory_limit_full": OF_TENANT,
    "workspaces_limit_full": OF_TENANT,
    "behind_own_request": OWN,
    "person_gpus_full": OWN,
    "person_workspaces_full": OWN,
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
}
FIELDS = ("pool_id", "tenant_id", "user_id")


def in_words(codes: Mapping[Claim, str], now: datetime) -> dict[UUID, str]:
    """Return a sentence for each claim, by the code of its reason; none for codes that wait for no run. One query."""
    claims = {claim: WAITS_FOR[code] for claim, code in codes.items() if code in WAITS_FOR}
    if not claims:
        return {}
    pools, tenants = ({getattr(claim, name) for claim in claims} for name in ("pool_id", "tenant_id"))
    running = Claim.objects.filter(
        Q(pool__in=pools) | Q(tenant__in=tenants), state=Claim.State.ADMITTED, ends_at__gt=now
    )
    ends = list(running.order_by().values(*FIELDS).annotate(end=Min("ends_at")))
    found = {}
    for claim, fields in claims.items():
        of_these = (one["end"] for one in ends if all(one[name] == getattr(claim, name) for name in fields))
        end = min(of_these, default=None)
        known, unknown = SENTENCES[fields[0]]
        found[claim.pk] = str(known) % {"time": time_in_words(end, now)} if end else str(unknown)
    return found
