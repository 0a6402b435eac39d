"""Reading the audit trail, for the API, the page and the export: who may see which entries, and the filters."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_filters.fields import IsoDateTimeField

from accounts.access import Actor, owned_tenants
from accounts.errors import NotAllowed
from accounts.models import AuditEntry, Tenant
from accounts.search import bounded

KEYSET = ("-at", "-id")


def visible(actor: Actor) -> QuerySet[AuditEntry]:
    """Return the entries that the actor may see: owners their tenants', admins all, a bound token its tenant's."""
    entries = AuditEntry.objects.select_related("tenant")
    if sees_all(actor):
        return entries
    owned = owned_tenants(actor)
    if not owned.exists():
        raise NotAllowed(
            "owners_only",
            _("Only owners of a tenant and admins can see the audit trail."),
            _("Ask an owner of the tenant."),
        )
    return entries.filter(tenant__in=owned)


def visible_in(actor: Actor) -> QuerySet[Tenant]:
    """Tenants whose entries the actor may see."""
    return Tenant.objects.all() if sees_all(actor) else owned_tenants(actor)


def sees_all(actor: Actor) -> bool:
    return actor.is_admin and (actor.token is None or actor.token.tenant_id is None)


class MomentField(IsoDateTimeField):  # type: ignore[misc]
    """A time, cleaned to UTC: PostgreSQL refuses some offsets that Python reads. A date means the whole day."""

    whole_day = time.min

    def clean(self, value: Any) -> Any:
        if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
            value = self._of_day(value)
        moment = super().clean(value)
        try:
            return moment and moment.astimezone(UTC)
        except OverflowError as error:
            raise ValidationError(_("Enter a date and time between the years 1 and 9999.")) from error

    def _of_day(self, text: str) -> str:
        try:
            day = datetime.combine(date.fromisoformat(text), self.whole_day)
            return timezone.make_aware(day).isoformat()
        except (ValueError, OverflowError) as error:
            raise ValidationError(_("There is no such day.")) from error


class LastMomentField(MomentField):
    whole_day = time.max


class MomentFilter(django_filters.IsoDateTimeFilter):  # type: ignore[misc]
    field_class = MomentField


class LastMomentFilter(django_filters.IsoDateTimeFilter):  # type: ignore[misc]
    field_class = LastMomentField


class TrailFilter(django_filters.FilterSet):  # type: ignore[misc]
    search = django_filters.CharFilter(
        method="find",
        label=gettext_lazy("Search"),
        help_text=gettext_lazy("In names, actions and details."),
        validators=[bounded],
    )
    tenant = django_filters.CharFilter(
        "tenant__slug", label=gettext_lazy("Tenant"), help_text=gettext_lazy("Its slug.")
    )
    actor = django_filters.CharFilter("actor_name", label=gettext_lazy("Who"))
    action = django_filters.CharFilter(
        method="of_kind",
        label=gettext_lazy("What"),
        help_text=gettext_lazy(
            "One action, such as workspace.launch, or all of one kind, such as workspace."
        ),
    )
    outcome = django_filters.ChoiceFilter(choices=AuditEntry.Outcome, label=gettext_lazy("Outcome"))
    since = MomentFilter(
        "at",
        lookup_expr="gte",
        label=gettext_lazy("From"),
        help_text=gettext_lazy("Not before."),
        widget=forms.DateInput(attrs={"type": "date"}),
    )
    until = LastMomentFilter(
        "at",
        lookup_expr="lte",
        label=gettext_lazy("To"),
        help_text=gettext_lazy("Not after."),
        widget=forms.DateInput(attrs={"type": "date"}),
    )

    class Meta:
        model = AuditEntry
        fields = ("search", "tenant", "actor", "action", "outcome", "since", "until")

    def find(self, entries: QuerySet[AuditEntry], name: str, text: str) -> QuerySet[AuditEntry]:
        for word in text.split():
            entries = entries.filter(
                Q(actor_name__icontains=word)
                | Q(action__icontains=word)
                | Q(target_id__istartswith=word)
                | Q(data__icontains=word)
            )
        return entries

    def of_kind(self, entries: QuerySet[AuditEntry], name: str, kind: str) -> QuerySet[AuditEntry]:
        return entries.filter(Q(action=kind) | Q(action__startswith=f"{kind}."))
