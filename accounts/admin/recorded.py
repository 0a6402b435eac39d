"""Base classes of all admin pages, in every room.

Each change is one entry of the audit trail, with the values before and after; there is no other history. An object in
use is not deleted, and the page says what uses it. A page links to the page that people see of the object.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList, ChangeListSearchForm
from django.core.exceptions import PermissionDenied
from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import Model, Q, QuerySet
from django.forms import BaseForm, CharField, ModelChoiceField, ModelForm, Textarea
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from accounts import signals
from accounts.access import Actor
from accounts.admin import deletion
from accounts.admin.fields import OwnFields
from accounts.admin.labels import LabelledRows
from accounts.admin.units import amount_in_unit, label_in_unit, shown
from accounts.errors import Refusal
from accounts.models import AuditEntry, Tenant
from accounts.rest.actors import actor_of
from accounts.search import bounded, too_much
from accounts.trail import audit
from accounts.trail.trail_words import sentence

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

M = TypeVar("M", bound=Model)

LONGEST_TOLD = 240
HISTORY_PAGE = 50


class SecretField(CharField):
    """Field for a secret that is kept encrypted: it shows nothing, and the audit trail has its name alone."""

    widget = Textarea(attrs={"rows": 6, "spellcheck": "false", "autocomplete": "off"})


class SearchForm(ChangeListSearchForm):
    def clean(self) -> None:
        """Refuse a search that is too long; Django shows the error above the whole list."""
        bounded(self.cleaned_data.get(SEARCH_VAR) or "")


class BoundedList(ChangeList):
    search_form_class = SearchForm


class Page(OwnFields, admin.ModelAdmin[M]):
    """A model's pages. `purpose` is the sentence above its list."""

    purpose: StrOrPromise = ""
    list_per_page = 50
    show_full_result_count = False

    def public_address(self, obj: M) -> str:
        """Address of the page that people see of the object; empty if there is none."""
        return ""

    def buttons(self, request: HttpRequest, obj: M) -> list[tuple[str, str]]:
        """Actions of the list that the object's page offers too: (name, label)."""
        return []

    def about(self, obj: M) -> Q:
        """Condition for the audit entries that are the object's history."""
        return Q(target_kind=self.opts.model_name, target_id=str(obj.pk))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return BoundedList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[M], search_term: str
    ) -> tuple[QuerySet[M], bool]:
        """Find nothing if the search is too long: fields that complete what is typed ask without the list's form."""
        if too_much(search_term):
            return queryset.none(), False
        return super().get_search_results(request, queryset, search_term)

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Show the list without filters if a filter value is impossible (a year out of range, a NUL)."""
        try:
            with transaction.atomic():
                return super().get_changelist_instance(request)
        except (ValueError, OverflowError, DataError) as error:
            raise IncorrectLookupParameters(error) from None

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        title = {"title": capfirst(str(self.opts.verbose_name_plural)), "purpose": self.purpose}
        return super().changelist_view(request, title | (extra_context or {}))

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        obj = context.get("original")
        rows = [row for shown in context["inline_admin_formsets"] for row in shown.formset.forms]
        for form in (context["adminform"].form, *rows):
            form.label_suffix = ""  # as on every other page
        if obj is not None:
            context |= {"public_address": self.public_address(obj), "buttons": self.buttons(request, obj)}
        return super().render_change_form(request, context, *args, **kwargs)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show who changed what, from the audit trail."""
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        if not self.has_view_or_change_permission(request, obj):
            raise PermissionDenied
        pages = self.get_paginator(request, AuditEntry.objects.filter(self.about(obj)), HISTORY_PAGE)
        page = pages.get_page(request.GET.get("p"))
        context = {
            **self.admin_site.each_context(request),
            "title": _("History of %(name)s") % {"name": obj},
            "lines": [(entry, sentence(entry), changes_in_entry(entry, self.model)) for entry in page],
            "page": page,
            "module_name": self.opts.verbose_name_plural,
            "object": obj,
            "opts": self.opts,
            "trail": f"?q={obj.pk}",
        }
        return TemplateResponse(request, "admin/object_history.html", context)

    def get_changelist_formset(self, request: HttpRequest, **kwargs: Any) -> Any:
        return super().get_changelist_formset(request, **{"formset": LabelledRows, **kwargs})

    # No entries in Django's own log: the audit trail records the same changes with more detail.
    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        return None


class ReadOnlyPage(Page[M]):
    """Pages for looking only: rows are created and ended elsewhere."""

    def idle_fields(self, obj: M) -> Mapping[str, object]:
        """Return {field: True if it means nothing for this object}. Such fields are left out."""
        return {}

    def get_fields(self, request: HttpRequest, obj: M | None = None) -> Any:
        idle = {name for name, is_idle in self.idle_fields(obj).items() if is_idle} if obj else set()
        names: Any = super().get_fields(request, obj)
        return [shown(self.model, name) for name in names if name not in idle]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False


class ReadOnlyInline(admin.TabularInline[M, Any]):
    """Related rows below an object, for looking only: they are created and ended elsewhere."""

    extra = 0
    can_delete = False
    show_change_link = True

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class RecordedPage(Page[M]):
    """Pages for changing: each save and each deletion is recorded in the audit trail."""

    def why_kept(self, obj: M) -> str:
        """Return why the object cannot be deleted now; empty if it can."""
        return ""

    def after_change(self, actor: Actor, obj: Model) -> None:
        """Follow up on a change, in its transaction."""

    def save_model(self, request: HttpRequest, obj: M, form: ModelForm[M], change: bool) -> None:
        super().save_model(request, obj, form, change)
        self.record(request, obj, "change" if change else "create", changes_of(form, is_new=not change))

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        super().save_formset(request, form, formset, change)
        of = {id(row.instance): row for row in formset.forms}
        for obj in formset.new_objects:
            self.record(request, obj, "create", changes_of(of[id(obj)], is_new=True))
        for obj, _fields in formset.changed_objects:
            self.record(request, obj, "change", changes_of(of[id(obj)]))
        for obj in formset.deleted_objects:
            self.record(request, obj, "delete", {})

    def delete_model(self, request: HttpRequest, obj: M) -> None:
        self.record(request, obj, "delete", {})
        super().delete_model(request, obj)
        connection.check_constraints()  # now, not at commit: a reference made just now must raise here

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[M]) -> None:
        for obj in queryset:
            self.delete_model(request, obj)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        try:
            with signals.access_changes_together():
                return super().changeform_view(request, object_id, form_url, extra_context)
        except Refusal as refusal:  # raised by a use case; the transaction was rolled back
            return self.refused(request, refusal)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        try:
            return super().delete_view(request, object_id, extra_context)
        except Refusal as refusal:
            return self.refused(request, refusal)
        except IntegrityError:
            text = _("Not deleted: it came into use a moment ago.")
            self.message_user(request, text, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def refused(self, request: HttpRequest, refusal: Refusal) -> HttpResponse:
        audit.record_refusal(request, actor_of(request), refusal)
        self.message_user(request, f"{refusal.message} {refusal.hint}".strip(), messages.ERROR)
        return HttpResponseRedirect(request.get_full_path())

    def get_deleted_objects(self, objs: Sequence[M] | QuerySet[M], request: HttpRequest) -> Any:
        """Allow the rows that belong to an object to be deleted with it; forbid it if `why_kept` gives a reason."""
        if kept := [f"{obj}: {why}" for obj in objs if (why := self.why_kept(obj))]:
            return [], {}, set(), kept
        return deletion.in_words(objs)

    def record(self, request: HttpRequest, obj: Model, verb: str, changes: dict[str, Any]) -> None:
        self.write_down(actor_of(request), obj, verb, changes)

    def write_down(self, actor: Actor, obj: Model, verb: str, changes: dict[str, Any]) -> None:
        """Record a change in the audit trail, and follow up on it. The API's writes call it, too."""
        tenant = obj if isinstance(obj, Tenant) else getattr(obj, "tenant", None)
        data = {"name": str(obj), **changes}
        # An entry cannot point to a tenant that is being deleted.
        stays = tenant if verb != "delete" or not isinstance(obj, Tenant) else None
        audit.record(actor, f"{obj._meta.model_name}.{verb}", target=obj, tenant=stays, data=data)
        self.after_change(actor, obj)


def changes_of(form: BaseForm, *, is_new: bool = False) -> dict[str, Any]:
    """Return {fields, before, after} of a form. A secret's name is listed, its value never."""
    fields = sorted(form.changed_data)
    told = [name for name in fields if not _is_secret(form, name) and name in form.cleaned_data]
    before = {} if is_new else {"before": {name: plain(_before(form, name)) for name in told}}
    return {"fields": fields, **before, "after": {name: plain(form.cleaned_data[name]) for name in told}}


def _is_secret(form: BaseForm, name: str) -> bool:
    return "password" in name or isinstance(form.fields[name], SecretField)


def plain(value: Any) -> Any:
    """Return the value as JSON, readable by people: rows as their names."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | QuerySet):
        return [plain(item) for item in value]
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return f"{value.normalize():f}"
    return str(value)[:LONGEST_TOLD]


def changes_in_entry(entry: AuditEntry, model: type[Model]) -> list[tuple[str, Any, Any]]:
    """Return (field, before, after) of an entry, with the fields' names from the form."""
    before, after = entry.data.get("before") or {}, entry.data.get("after") or {}
    return [
        (_name_of(model, field), *(amount_in_unit(field, values.get(field)) for values in (before, after)))
        for field in entry.data.get("fields", [])
    ]


def _before(form: BaseForm, name: str) -> Any:
    value, field = form.get_initial_for_field(form.fields[name], name), form.fields[name]
    if isinstance(field, ModelChoiceField) and value is not None:
        return field.queryset.filter(pk=value).first()  # type: ignore[union-attr]
    return value


def _name_of(model: type[Model], field: str) -> str:
    known = {row.name: getattr(row, "verbose_name", row.name) for row in model._meta.get_fields()}
    return label_in_unit(str(known.get(field, field)))
