"""Admin pages of people: their details, tenants, running workspaces and access."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters

from accounts import members
from accounts.admin.recorded import ReadOnlyInline, RecordedPage, changes_of
from accounts.credentials import passwords
from accounts.locks import locked
from accounts.models import APIToken, SSHKey, User
from accounts.rest.actors import actor_of
from jobs.models import Job
from portal.admin import members as membership_rows
from portal.admin import people_import_page
from portal.admin.activation import Deactivate, Reactivate
from portal.admin.members import MembershipInline
from portal.admin.second_factor import ResetSecondFactor
from portal.admin.ways import WAYS, Way
from quotas.models import Booking, Claim
from workspaces.models import Workspace

LABELS = {"username": gettext_lazy("User name"), "is_staff": gettext_lazy("Admin")}
HELP = {
    "is_staff": gettext_lazy("Sets up this installation, and acts as an owner in every tenant."),
    "is_active": gettext_lazy("If off, their sessions, tokens and keys stop working. Nothing is deleted."),
}

# Changed by the use cases only, because they know who must keep them.
ACCESS = ("is_active", "is_staff")
NEW = {"is_active": True, "is_staff": False}


class PersonForm(UserChangeForm):  # type: ignore[type-arg]
    language = forms.ChoiceField(
        label=gettext_lazy("Language"),
        choices=[("", gettext_lazy("Same as their browser")), *settings.LANGUAGES],
        required=False,
    )

    class Meta(UserChangeForm.Meta):
        model = User
        labels = LABELS
        help_texts = HELP

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # A field has changed if it differs from what this form showed, whatever somebody else changed since.
        for name in ACCESS:
            self.fields[name].show_hidden_initial = True


class NewPersonForm(forms.ModelForm):  # type: ignore[type-arg]
    """Form for a person who signs in with a first password of ours, or only by the organisation's sign-on."""

    way = forms.ChoiceField(
        label=gettext_lazy("Signs in"), choices=WAYS, widget=forms.RadioSelect, initial=Way.PASSWORD
    )

    class Meta:
        model = User
        fields = ("username", "first_name", "last_name", "email", "is_staff")
        labels = LABELS
        help_texts = HELP

    def save(self, commit: bool = True) -> User:
        person: User = super().save(commit=False)
        self.password = passwords.new_password() if self.cleaned_data["way"] == Way.PASSWORD else None
        person.set_password(self.password)
        person.password_is_first = self.password is not None
        if commit:
            person.save()
        return person


class KeyInline(ReadOnlyInline[SSHKey]):
    model = SSHKey
    fields = ("name", "fingerprint", "created_at")


class TokenInline(ReadOnlyInline[APIToken]):
    model = APIToken
    fields = ("name", "scopes", "tenant", "expires_at", "last_used_at", "revoked_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[APIToken]:
        return super().get_queryset(request).select_related("tenant")


class WorkspaceInline(ReadOnlyInline[Workspace]):
    model = Workspace
    fk_name = "owner"
    fields = ("tenant", "pool", "units", "phase", "created_at")
    verbose_name_plural = gettext_lazy("workspaces (without deleted ones)")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workspace]:
        return super().get_queryset(request).filter(deleted_at=None).select_related("tenant", "pool")


class JobInline(ReadOnlyInline[Job]):
    model = Job
    fk_name = "owner"
    fields = ("tenant", "pool", "completions", "phase", "created_at")
    verbose_name_plural = gettext_lazy("jobs that are not over")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        rows = super().get_queryset(request).filter(ended_at=None, deleted_at=None)
        return rows.select_related("tenant", "pool")


class WayFilter(admin.SimpleListFilter):
    title = gettext_lazy("signs in")
    parameter_name = "way"

    def lookups(self, request: HttpRequest, page: object) -> list[tuple[str, str]]:
        return [
            ("password", _("with a password")),
            ("sign-on", _("only by single sign-on")),
            ("never", _("never signed in")),
        ]

    def queryset(self, request: HttpRequest, rows: QuerySet[User]) -> QuerySet[User]:
        no_password = Q(password__startswith=UNUSABLE_PASSWORD_PREFIX) | Q(password="")
        chosen = {"password": ~no_password, "sign-on": no_password, "never": Q(last_login=None)}
        return rows.filter(chosen.get(self.value() or "", Q()))


@admin.register(User)
class PersonPage(RecordedPage[User], UserAdmin):  # type: ignore[type-arg]
    purpose = gettext_lazy(
        "Everyone who can sign in. Roles set what they can do in each tenant; admins can do everything."
    )
    list_display = ("person", "joined", "running", "last_login", "is_admin", "is_active")
    list_filter = ("is_active", "is_staff", WayFilter, "memberships__tenant")
    search_fields = ("username", "first_name", "last_name", "email")
    date_hierarchy = "date_joined"
    ordering = ("username",)
    filter_horizontal = ()
    readonly_fields = ("last_login", "date_joined")
    actions = (Deactivate(), Reactivate(), ResetSecondFactor())
    inlines = (MembershipInline, WorkspaceInline, JobInline, TokenInline, KeyInline)
    form = PersonForm
    add_form = NewPersonForm
    add_form_template = "admin/change_form.html"
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (gettext_lazy("Person"), {"fields": ("first_name", "last_name", "email", "language")}),
        (
            gettext_lazy("Access"),
            {
                "fields": ("is_active", "is_staff", "last_login", "date_joined"),
            },
        ),
    )
    add_fieldsets = (
        (None, {"fields": ("username", "way")}),
        (gettext_lazy("Person"), {"fields": ("first_name", "last_name", "email")}),
        (gettext_lazy("Access"), {"fields": ("is_staff",)}),
    )

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.import_view)
        return [path("import/", view, name="accounts_user_import"), *super().get_urls()]

    @method_decorator(sensitive_post_parameters())
    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Add people from a CSV, after a preview of each line."""
        return people_import_page.respond(self, request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        admitted = Claim.objects.filter(user=OuterRef("pk"), state=Claim.State.ADMITTED)
        count = admitted.order_by().values("user").annotate(count=Count("pk")).values("count")
        people: QuerySet[User] = super().get_queryset(request).filter(service_of=None)
        return people.annotate(running=Coalesce(Subquery(count), 0)).prefetch_related("memberships__tenant")

    def get_inlines(self, request: HttpRequest, obj: User | None) -> Any:
        return self.inlines if obj else (MembershipInline,)

    def buttons(self, request: HttpRequest, obj: User) -> list[tuple[str, str]]:
        return [("deactivate", _("Deactivate …"))] if obj.is_active else [("reactivate", _("Reactivate …"))]

    @admin.display(description=gettext_lazy("person"), ordering="username")
    def person(self, person: User) -> str | SafeString:
        who = _(", ").join(word for word in (person.get_full_name(), person.email) if word)
        return (
            format_html('{}<br><span class="muted">{}</span>', person.username, who)
            if who
            else person.username
        )

    @admin.display(boolean=True, description=gettext_lazy("admin"), ordering="is_staff")
    def is_admin(self, person: User) -> bool:
        return person.is_staff

    @admin.display(description=gettext_lazy("tenants"))
    def joined(self, person: User) -> str:
        return _(", ").join(
            _("%(tenant)s (%(role)s)") % {"tenant": row.tenant.name, "role": row.get_role_display()}
            for row in person.memberships.all()
        )

    @admin.display(description=gettext_lazy("runs now"), ordering="running")
    def running(self, person: Any) -> int:
        return int(person.running)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Change active and admin by the use cases, and only if this form changed them."""
        actor = actor_of(request)
        # Lock both people before one of them is changed, as members.py does.
        list(locked(User.objects.filter(pk__in={actor.user.pk, obj.pk})))
        before = User.objects.filter(pk=obj.pk).values(*ACCESS).first() or NEW
        wanted = {name: getattr(obj, name) if name in form.changed_data else before[name] for name in ACCESS}
        obj.is_active, obj.is_staff = before["is_active"], before["is_staff"]
        changes = changes_of(form, is_new=not change)
        fields = set(changes["fields"]) - set(ACCESS)
        # Save only the changed fields of an existing person: others, above all access, may have changed since.
        obj.save(update_fields=fields if change else None)
        if not change or fields:
            self.record(request, obj, "change" if change else "create", changes)
        if wanted["is_active"] != obj.is_active:
            members.set_active(actor, obj, active=wanted["is_active"])
        if wanted["is_staff"] != obj.is_staff:
            members.set_admin(actor, obj, is_admin=wanted["is_staff"])
        obj.is_active, obj.is_staff = wanted["is_active"], wanted["is_staff"]

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        membership_rows.save(actor_of(request), formset)

    def response_add(self, request: HttpRequest, obj: User, post_url_continue: str | None = None) -> Any:
        """Show the first password, now and never again."""
        context = {
            **self.admin_site.each_context(request),
            "title": _("%(name)s can sign in") % {"name": obj.username},
            "opts": self.opts,
            "person": obj,
            "password": getattr(request, "first_password", None),
        }
        return TemplateResponse(request, "admin/person_made.html", context)

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> User:
        person: User = super().save_form(request, form, change)
        request.first_password = getattr(form, "password", None)  # type: ignore[attr-defined]
        return person

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        response: HttpResponse = super().user_change_password(request, id, form_url)
        if request.method == "POST" and response.status_code == 302:
            passwords.record_password_set_by_admin(actor_of(request), User.objects.get(pk=id))
        return response

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return True

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Remove bulk deletion: a person is deleted on their own page, one at a time."""
        return {
            name: action for name, action in super().get_actions(request).items() if name != "delete_selected"
        }

    def why_kept(self, obj: User) -> str:
        if obj.claims.exists() or obj.workspaces.exists() or obj.jobs.exists():
            return _(
                "They have or had workspaces or jobs. Deactivate them instead: this keeps their history."
            )
        if Booking.objects.filter(created_by=obj).exists():
            return _("They have booked GPUs, which stays on record. Deactivate them instead.")
        return ""

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        members.delete_person(actor_of(request), obj)
