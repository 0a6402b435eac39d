"""Suggestions of the launch form: a name, and a first launch for new people."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence
from typing import Any

from accounts.access import Actor
from accounts.models import Tenant
from quotas.estimates import Estimator
from quotas.models import Flavor
from workloads.models import Image
from workloads.sizes.sizing import Size
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


def friendly_name(actor: Actor) -> str:
    """Two plain words that none of the person's workspaces has yet."""
    mine = Workspace.objects.filter(owner=actor.user, deleted_at__isnull=True)
    taken = set(mine.values_list("name", flat=True))
    free = [name for name in (f"{a}-{n}" for a in ADJECTIVES for n in NOUNS) if name not in taken]
    return secrets.choice(free) if free else f"workspace-{len(taken) + 1}"


def sample(actor: Actor, tenants: Sequence[Tenant]) -> dict[str, Any] | None:
    """Suggest a first launch: the smallest size with a GPU that starts now, else the smallest that starts now."""
    image = Image.objects.filter(is_active=True).first()
    flavors = list(Flavor.objects.filter(pool__is_open=True).select_related("pool__cluster"))
    flavors.sort(
        key=lambda flavor: (flavor.units == 0, flavor.pool.gpus(flavor.units), flavor.cpu_millicores)
    )
    looks = Estimator()
    for tenant in tenants[:MOST_TRIED]:
        for flavor in flavors:
            if image and looks.starts_now(Size.of_flavor(flavor).asked_by(tenant, actor.user)):
                return {
                    "once": uuid.uuid4(),
                    "tenant": tenant,
                    "image": image,
                    "flavor": flavor,
                    "name": friendly_name(actor),
                }
    return None
