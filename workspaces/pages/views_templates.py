"""Templates on the launch page: the form is saved as one, filled in from one, and one is deleted."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from accounts.access import Actor, owned_tenants
from accounts.errors import Invalid, NotThere
from accounts.rest.actors import actor_of
from workloads.asking import check_name
from workloads.figures import number
from workloads.pages.fields import lines_of_env
from workloads.pages.forms import FIND, MIB_PER_GIB
from workloads.pages.images import OWN
from workloads.serializers import wishes_of
from workspaces.api.templates import Kept, TemplateLaunch
from workspaces.launch import templates
from workspaces.launch.suggestions import friendly_name, is_taken
from workspaces.models import Template
from workspaces.state.declared import App

from .forms import LaunchForm, lines_of

MOST_SHOWN = 30


@never_cache
@login_required
@require_POST
def delete(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    template = templates.get(actor, id)
    templates.delete(actor, template)
    messages.success(request, _("The template “%(name)s” was deleted.") % {"name": template.name})
    return redirect("launch")


def shown(actor: Actor) -> dict[str, Any]:
    """Return the templates for the launch page, and whether the person may keep some."""
    owned = set(owned_tenants(actor).values_list("pk", flat=True))
    rows = templates.visible(actor).order_by("name", "tenant__slug")[:MOST_SHOWN]
    return {
        "templates": [(template, template.tenant_id in owned) for template in rows],
        "may_save_template": bool(owned),
    }


def save(actor: Actor, form: LaunchForm) -> str:
    """Save a valid form as a template, without secrets' values. Return the address that fills it in again."""
    name = str(form.data.get("template_name", "")).strip()
    title = _("The template was not saved.")
    if faults := check_name(name):
        raise Invalid("invalid", title, " ".join(faults["name"]))
    body = form.body()
    fields = TemplateLaunch(
        data={name: value for name, value in body.items() if name in TemplateLaunch().fields}
        | {"secret_names": list(body.get("secret_env", ()))}
    )
    if not fields.is_valid():
        raise Invalid("invalid", title, _("It has more, or longer, values than a template may have."))
    kept = Kept.of(body["tenant"], fields.validated_data)
    template = templates.save(actor, name, kept.spec, kept.body)
    return f"{reverse('launch')}?template={template.pk}"


def named(actor: Actor, text: str) -> Template | None:
    """Return the template of a link; None if the person does not see it."""
    try:
        return templates.get(actor, UUID(text))
    except (NotThere, ValueError):
        return None


def first_values(actor: Actor, template: Template) -> dict[str, Any]:
    """First values of the launch form. The name is the template's, if the person has none of this name yet."""
    body, tenant = template.body, template.tenant.slug
    values = {
        "tenant": tenant,
        "name": friendly_name(actor) if is_taken(actor, tenant, template.name) else template.name,
        "image": OWN if body.get("image_reference") else body["image"],
        "image_reference": body.get("image_reference", ""),
        "repository": body.get("repository", ""),
        "disk_gib": body.get("disk_mib", 0) // MIB_PER_GIB,
        "max_runtime_minutes": body.get("max_runtime_minutes") or "",
        "idle_minutes": body.get("idle_minutes"),
        "notify": body.get("notify", True),
        "apps": lines_of(App(**app) for app in body.get("apps", ())),
        "env": lines_of_env(body.get("env", {})),
        "secret_env": "\n".join(f"{name}=" for name in body.get("secret_names", ())),
        "volumes": [wish.key for wish in wishes_of(body.get("volumes", ()))],
    }
    return values | _size(body)


def _size(body: dict[str, Any]) -> dict[str, Any]:
    if "flavor" in body:
        return {"flavor": body["flavor"]}
    least = body.get("gpu", {})
    memory_mib = least.get("min_memory_mib") or body.get("gpu_memory_mib")
    values = {
        "in_pool": body.get("pool"),
        "gpus": "gpus" in body and number(body["gpus"]),
        "gpu_memory_gb": memory_mib and memory_mib * 2**20 // 10**9,
        "compute_capability": least.get("min_compute_capability"),
        "ecc": least.get("ecc"),
        "cpu": "cpu" in body and number(body["cpu"]),
        "memory_gib": body.get("memory_mib", 0) // MIB_PER_GIB,
    }
    return {"flavor": FIND} | {name: value for name, value in values.items() if value}
