"""Templates of a launch: an owner fills in the form once, for the members of a tenant. They hold no secrets' values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.access import Actor, role_in, tenant_by_slug, visible_tenants
from accounts.errors import Conflict, Invalid, NotAllowed, NotThere
from accounts.models import Role, Scope, Tenant
from accounts.trail import audit
from workloads.asking import check_name
from workspaces.models import Template

from .launch import LaunchSpec, check

MOST_OF_A_TENANT = 100


def visible(actor: Actor) -> QuerySet[Template]:
    return Template.objects.filter(tenant__in=visible_tenants(actor)).select_related("tenant", "created_by")


def get(actor: Actor, template_id: UUID) -> Template:
    """Return the template or raise NotThere."""
    template = visible(actor).filter(pk=template_id).first()
    if template is None:
        raise NotThere("not_found", _("There is no such template."), _("Look in the list of templates."))
    return template


def may_save(actor: Actor, tenant: Tenant) -> bool:
    """Return True for owners of the tenant and for admins."""
    return role_in(actor, tenant) == Role.OWNER


def create(actor: Actor, name: str, spec: LaunchSpec, body: Mapping[str, Any]) -> Template:
    """Save what `spec` asks for, as `body`. Raise a Refusal if it could not be launched, or the name is taken."""
    tenant = tenant_by_slug(actor, spec.tenant)
    _require_owner(actor, tenant)
    _check(tenant, name, spec)
    if tenant.templates.count() >= MOST_OF_A_TENANT:
        text = _("A team has at most %(most)d templates.") % {"most": MOST_OF_A_TENANT}
        raise Conflict("too_many_templates", text, _("Delete some that nobody uses."))
    template = Template(tenant=tenant, name=name, body=dict(body), created_by=actor.user)
    _save(actor, template, "template.create")
    return template


def change(
    actor: Actor, template: Template, name: str, spec: LaunchSpec, body: Mapping[str, Any]
) -> Template:
    _require_owner(actor, template.tenant)
    _check(template.tenant, name, spec)
    template.name, template.body = name, dict(body)
    _save(actor, template, "template.change")
    return template


def save(actor: Actor, name: str, spec: LaunchSpec, body: Mapping[str, Any]) -> Template:
    """Create a template, or change the one of this name."""
    there = visible(actor).filter(tenant__slug=spec.tenant, name=name).first()
    return change(actor, there, name, spec, body) if there else create(actor, name, spec, body)


def delete(actor: Actor, template: Template) -> None:
    _require_owner(actor, template.tenant)
    with transaction.atomic():
        template.delete()
        audit.record(actor, "template.delete", tenant=template.tenant, data={"name": template.name})


def _require_owner(actor: Actor, tenant: Tenant) -> None:
    actor.require(Scope.WORKSPACES)
    if not may_save(actor, tenant):
        raise NotAllowed(
            "owners_only",
            _("Only owners of the team may change its templates."),
            _("Ask an owner, or share your form as a link."),
        )


def _check(tenant: Tenant, name: str, spec: LaunchSpec) -> None:
    if faults := check_name(name):
        text = _("The template's name is not valid.")
        raise Invalid("invalid", text, " ".join(faults["name"]), fields=faults)
    check(tenant, spec)


def _save(actor: Actor, template: Template, deed: str) -> None:
    try:
        with transaction.atomic():
            template.save()
            audit.record(actor, deed, tenant=template.tenant, data={"name": template.name})
    except IntegrityError as error:
        if "one_template_of_a_name" not in str(error):
            raise
        text = _("There is a template “%(name)s” in this team.") % {"name": template.name}
        fields = {"name": [_("Already taken.")]}
        raise Conflict("name_taken", text, _("Choose another name."), fields=fields) from None
