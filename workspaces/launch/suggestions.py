"""Suggestions of the launch form: a name, and a first launch for new people."""

from __future__ import annotations

import random
import secrets
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from accounts.access import Actor
from accounts.models import Tenant
from workloads.images import catalogue
from workloads.sizes.choices import best_now, pool_choices, with_room_first
from workspaces.models import Workspace

ADJECTIVES = (
    "amber", "brave", "bright", "calm", "clear", "cosy", "deep", "fair", "gentle", "keen", "kind", "light",
    "lucid", "mellow", "nimble", "open", "patient", "plain", "quick", "quiet", "steady", "still", "swift", "warm",
)  # fmt: skip
NOUNS = (
    "anchor", "atlas", "bay", "beacon", "breeze", "buoy", "compass", "coral", "cove", "current", "delta", "dune",
    "fjord", "harbor", "heron", "island", "lagoon", "lantern", "meadow", "pier", "reef", "sail", "shore", "tide",
)  # fmt: skip


MOST_TRIED = 3  # tenants, for a first launch


def friendly_name(actor: Actor, choose: Callable[[Sequence[str]], str] = secrets.choice) -> str:
    """Two plain words that none of the person's workspaces has yet."""
    mine = Workspace.objects.filter(owner=actor.user, deleted_at__isnull=True)
    taken = set(mine.values_list("name", flat=True))
    free = [name for name in (f"{a}-{n}" for a in ADJECTIVES for n in NOUNS) if name not in taken]
    return choose(free) if free else f"workspace-{len(taken) + 1}"


def is_taken(actor: Actor, tenant: str, name: str) -> bool:
    """Return True if the person has a workspace of this name in the tenant with this slug."""
    mine = Workspace.objects.filter(owner=actor.user, tenant__slug=tenant, deleted_at__isnull=True)
    return mine.filter(name=name).exists()


def sample(actor: Actor, tenants: Sequence[Tenant]) -> dict[str, Any] | None:
    """Suggest a first launch: the size that the launch form preselects, in the first tenant in which one starts now."""
    image = catalogue().first()
    for tenant in tenants[:MOST_TRIED] if image else ():
        flavor = best_now(with_room_first(pool_choices(actor, tenant), tenant, actor.user))
        if flavor:
            return {
                "once": uuid.uuid4(),
                "tenant": tenant,
                "image": image,
                "flavor": flavor,
                # The same each time: the page may be drawn again before its reader has clicked.
                "name": friendly_name(actor, random.Random(str(actor.user.pk)).choice),
            }
    return None
