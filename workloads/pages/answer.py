"""Panel beside a form while it is filled in: the forecast, what is left, and the same size elsewhere.

No row is written: that is the form's own button.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from accounts.access import Actor
from accounts.errors import Invalid
from accounts.models import Tenant
from quotas.accounting import budgets
from quotas.queries import limits_for, pools_for
from storage.mounts import foreseen
from workloads import drivers
from workloads.repositories import holds_credentials, without_credentials
from workloads.sizes.estimate import Alternative, estimate
from workloads.sizes.sizing import Found, Size, found, resolve

from .bodies import curl
from .forms import FIND, FINDING, MIB_PER_GIB, WorkloadForm

MOST_FOUND = 5  # pools beside the form


def live_answer(actor: Actor, tenant: Tenant, form: WorkloadForm, root: str) -> dict[str, Any]:
    """Return the context of the template `_answer.html`. The form is bound; only its valid fields count."""
    context: dict[str, Any] = {
        "asking": tenant,
        "left": what_is_left(actor, tenant.slug),
        "budgets": [
            budgets.meter_values(one) for one in budgets.own_standings(actor, [tenant]).get(tenant.pk, [])
        ],
        "link": link(form, root),
        "curl": curl(root + reverse(form.api), form.body()),
        "leaves_credentials_out": holds_credentials(str(form["repository"].value() or "")),
        "finds": form.finds,
        "page": reverse(form.page),
        "name_faults": form.name_faults,
    }
    if not form.chosen_flavor:
        return context
    if form.size_faults:
        return context | {"fault": form.size_faults[0]}
    if form["image_reference"].value() and (faults := form.errors.get("image_reference")):
        return context | {"fault": faults[0]}
    asked = form.size()
    pools = found(tenant, form.needed(), form.pool_nodes) if form.finds else []
    try:
        size = pools[0].size if pools and asked.gpu else resolve(tenant, asked)
    except Invalid as refusal:
        return context | {"fault": fault_of(refusal)}
    minutes = form.cleaned_data.get("max_runtime_minutes")
    mounts = form.mounts()
    try:
        old_drivers = driver_warning(form, size)
        needs = foreseen.needs(actor, tenant, size.pool.cluster, mounts, form.own_paths)
    except Invalid as refusal:
        return context | {"fault": fault_of(refusal)}
    forecast, others = estimate(
        tenant, actor.user, size, minutes, form.pool_nodes, needs,
        is_bound=bool(mounts), priority=form.priority, several=form.several,
    )  # fmt: skip
    return context | {
        "forecast": forecast,
        "waits_for": form.waits_for if forecast["admissible"] else 0,
        "old_drivers": old_drivers,
        "size": size,
        "found": choices(pools[:MOST_FOUND], form, root),
        "pool": form.pools.get(size.pool.slug) or pools_for(actor, [size.pool])[0],
        "alternatives": offered(others, tenant),
    }


def driver_warning(form: WorkloadForm, size: Size) -> str:
    """Return a sentence if some nodes of the pool are too old for the image. Raise Invalid if all are."""
    image, seen = form.chosen_image, form.pool_nodes.get(size.pool.pk)
    if image is None:
        return ""
    found = drivers.refuse_too_old(image, size.pool, size.units, seen.nodes if seen else None)
    return drivers.warning(image, size.pool, found)


def fault_of(refusal: Invalid) -> str:
    return next((text for texts in refusal.fields.values() for text in texts), refusal.message)


def choices(pools: list[Found], form: WorkloadForm, root: str) -> list[dict[str, Any]]:
    """Pools with such a GPU, and the form values that choose each, for a script and as a link."""
    fills = [{"flavor": FIND, "in_pool": one.size.pool.slug} for one in pools]
    here = link(form, root)
    return [
        {"in": one, "fills": json.dumps(values), "link": f"{here}&{urlencode(values)}"}
        for one, values in zip(pools, fills, strict=True)
    ]


def offered(others: list[Alternative], tenant: Tenant) -> list[dict[str, Any]]:
    """Alternatives with the form values that choose each, for a script and as a link."""
    return [
        {
            "other": other,
            "fills": json.dumps(fills(other)),
            "link": urlencode(fills(other) | {"tenant": tenant.slug}),
        }
        for other in others
    ]


def fills(other: Alternative) -> dict[str, Any]:
    asked = other.size.asked()
    values: dict[str, Any] = {} if other.minutes is None else {"max_runtime_minutes": other.minutes}
    if asked.flavor:
        return values | {"flavor": asked.flavor}
    return values | {
        "flavor": FIND,
        "in_pool": other.size.pool.slug,
        "gpus": f"{float(asked.gpus or 0):g}",
        "cpu": f"{other.size.cpu_millicores / 1000:g}",
        "memory_gib": max(1, other.size.memory_mib // MIB_PER_GIB),
    }


def what_is_left(actor: Actor, tenant: str) -> dict[str, Any]:
    """Rest of the tenant's limits over all pools; amounts without a limit are left out."""
    of_tenant = next(limits for limits in limits_for(actor) if limits["tenant"] == tenant)
    return {
        name: {"left": max(0, amount["limit"] - amount["used"]), "limit": amount["limit"]}
        for name, amount in of_tenant.items()
        if name != "tenant" and amount["limit"] is not None
    }


def link(form: WorkloadForm, root: str) -> str:
    """Return an address that fills in this form for somebody else."""
    names = form.in_links + (FINDING if form.finds else ())
    values = {name: _as_text(form[name].value()) for name in names}
    values["repository"] = without_credentials(values["repository"])
    said = {
        name: "1" if value == "True" else value
        for name, value in values.items()
        if value not in ("", "0", "False")
    }
    return f"{root}{reverse(form.page)}?{urlencode(said)}"


def _as_text(value: Any) -> str:
    """Return a field's value as a link has it: of several, with commas between them."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value or "")
