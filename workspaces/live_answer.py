"""What stands beside the launch form while it is filled in: when it would start, what is left, and the same elsewhere.

Reads and writes nothing but words: launching is the form's own button.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from accounts.access import Actor
from accounts.errors import Invalid
from accounts.models import Tenant
from quotas.queries import limits_for, pools_for

from .estimate import alternatives, estimate
from .forms import FINDING, LaunchForm
from .prefill import IN_LINKS
from .same_launch import body_of_form, curl, holds_credentials, without_credentials
from .sizing import resolve


def live_answer(actor: Actor, tenant: Tenant, form: LaunchForm, root: str) -> dict[str, Any]:
    """For the template `_answer.html`. The form is bound; of its fields only those that are valid count."""
    context: dict[str, Any] = {
        "asking": tenant,
        "left": what_is_left(actor, tenant.slug),
        "link": link(form, root),
        "curl": curl(root + reverse("api-v1:workspaces"), body_of_form(form)),
        "leaves_credentials_out": holds_credentials(str(form["repository"].value() or "")),
        "finds": form.finds,
    }
    if not form.chosen_flavor:
        return context
    if form.size_faults:
        return context | {"fault": form.size_faults[0]}
    try:
        size = resolve(tenant, form.size())
    except Invalid as refusal:
        texts = [text for texts in refusal.fields.values() for text in texts]
        return context | {"fault": (texts or [refusal.message])[0]}
    outlook = estimate(tenant, size)
    return context | {
        "outlook": outlook,
        "size": size,
        "pool": pools_for(actor, [size.pool])[0],
        "alternatives": [] if outlook["starts_now"] else alternatives(tenant, size),
    }


def what_is_left(actor: Actor, tenant: str) -> dict[str, Any]:
    """Of the tenant's limits over all pools; what has no limit is not in it."""
    of_tenant = next(limits for limits in limits_for(actor) if limits["tenant"] == tenant)
    return {
        name: {"left": max(0, amount["limit"] - amount["used"]), "limit": amount["limit"]}
        for name, amount in of_tenant.items()
        if name != "tenant" and amount["limit"] is not None
    }


def link(form: LaunchForm, root: str) -> str:
    """An address that fills in this form for somebody else."""
    names = IN_LINKS + (FINDING if form.finds else ())
    values = {name: str(form[name].value() or "") for name in names}
    values["repository"] = without_credentials(values["repository"])
    said = {
        name: "1" if value == "True" else value
        for name, value in values.items()
        if value not in ("", "0", "False")
    }
    return f"{root}{reverse('launch')}?{urlencode(said)}"
