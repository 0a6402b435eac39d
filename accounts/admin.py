"""Admin pages for people, tenants and the audit trail. What they change goes through the same use cases."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from accounts import audit, members, signals, tokens
from accounts.access import Actor
from accounts.models import APIToken, AuditEntry, Membership, SSHKey, Tenant, User
from accounts.rest.actors import actor_of

admin.site.unregister(Group)  # roles in tenants say who may what; groups would say nothing


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """For looking: rows are made and ended elsewhere."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(User)
class PersonAdmin(UserAdmin):  # type: ignore[type-arg]
    list_display = ("username", "email", "is_active", "is_staff", "last_login")
    list_filter = ("is_active", "is_staff")
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (_("Person"), {"fields": ("first_name", "last_name", "email", "language")}),
        (_("Access"), {"fields": ("is_active", "is_staff", "last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")
    actions = ("deactivate",)

    @admin.action(description=_("Deactivate: sessions, tokens and keys stop working at once"))
    def deactivate(self, request: HttpRequest, people: QuerySet[User]) -> None:
        actor = actor_of(request)
        for person in people.filter(is_active=True).exclude(pk=actor.user.pk):
            members.set_active(actor, person, active=False)
            messages.success(request, _("%(name)s is deactivated.") % {"name": person.username})

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        actor = actor_of(request)
        if "is_active" in form.changed_data and change:
            members.set_active(actor, obj, active=obj.is_active)
        if "is_staff" in form.changed_data and change:
            signals.access_changed.send(sender=User, user=obj)
        _record_save(actor, obj, form, change)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False  # deactivated instead: what they did stays attributable


class MembershipInline(admin.TabularInline):  # type: ignore[type-arg]
    model = Membership
    autocomplete_fields = ("user",)
    extra = 1


@admin.register(Tenant)
class TenantAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("name", "slug", "people", "created_at")
    search_fields = ("name", "slug")
    inlines = (MembershipInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        tenants: QuerySet[Tenant] = super().get_queryset(request)
        return tenants.annotate(people=Count("memberships"))

    @admin.display(description=_("people"), ordering="people")
    def people(self, tenant: Any) -> int:
        return int(tenant.people)

    def get_readonly_fields(self, request: HttpRequest, obj: Tenant | None = None) -> tuple[str, ...]:
        return ("slug",) if obj else ()  # namespaces are named after it

    def has_delete_permission(self, request: HttpRequest, obj: Tenant | None = None) -> bool:
        return False  # its namespaces and volumes would be left behind

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        _record_save(actor_of(request), obj, form, change, tenant=obj)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Members by the use cases, so that what is open of a person is checked anew."""
        actor = actor_of(request)
        changed = formset.save(commit=False)
        for membership in formset.deleted_objects:
            members.remove(actor, membership.tenant, membership.user.username)
        for membership in changed:
            members.set_role(actor, membership.tenant, membership.user.username, membership.role)


@admin.register(SSHKey)
class SSHKeyAdmin(ReadOnlyAdmin):
    list_display = ("user", "name", "fingerprint", "created_at")
    search_fields = ("user__username", "fingerprint")
    list_select_related = ("user",)


@admin.register(APIToken)
class APITokenAdmin(ReadOnlyAdmin):
    fields = (
        "user",
        "name",
        "prefix",
        "scopes",
        "tenant",
        "created_at",
        "expires_at",
        "last_used_at",
        "revoked_at",
    )
    list_display = ("user", "name", "prefix", "scopes", "tenant", "expires_at", "last_used_at", "revoked_at")
    search_fields = ("user__username", "prefix", "name")
    list_select_related = ("user", "tenant")
    actions = ("revoke",)

    @admin.action(description=_("Revoke"), permissions=["view"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[APIToken]) -> None:
        for token in chosen.filter(revoked_at=None):
            tokens.end(actor_of(request), token)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "actor_name", "action", "outcome", "tenant", "target_kind", "address")
    list_filter = ("outcome", "tenant", "at")
    search_fields = ("actor_name", "action", "target_id")
    list_select_related = ("tenant",)
    show_full_result_count = False


def _record_save(actor: Actor, row: Any, form: Any, change: bool, *, tenant: Tenant | None = None) -> None:
    """Which fields, never their values: one of them is a password."""
    verb = "change" if change else "create"
    fields = {"fields": sorted(form.changed_data)}
    audit.record(actor, f"{row._meta.model_name}.{verb}", target=row, tenant=tenant, data=fields)
