"""Memberships, edited on both pages: a tenant's and a person's."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts import members
from accounts.access import Actor
from accounts.admin.fields import OwnFields
from accounts.admin.labels import LabelledInlineRows
from accounts.locks import locked
from accounts.models import Membership, Tenant


class MembershipInline(OwnFields, admin.TabularInline[Membership, Any]):
    model = Membership
    formset = LabelledInlineRows
    extra = 0
    autocomplete_fields = ("user", "tenant")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        return (
            super()
            .get_queryset(request)
            .filter(user__service_of=None)
            .select_related("user", "tenant")
            .order_by("tenant__slug", "user__username")
        )


def save(actor: Actor, formset: Any) -> None:
    """Save by the use cases, so that a person's open connections are checked again. Lock the tenants first."""
    list(locked(Tenant.objects.filter(pk__in={form.instance.tenant_id for form in formset.forms})))
    changed = formset.save(commit=False)
    moved = [row for row, fields in formset.changed_objects if {"user", "tenant"} & set(fields)]
    gone = {row.pk for row in [*moved, *formset.deleted_objects]}
    for row in Membership.objects.filter(pk__in=gone).select_related("tenant", "user"):
        members.remove(actor, row.tenant, row.user.username)
    for row in changed:
        members.set_role(actor, row.tenant, row.user.username, row.role)
