"""Pages of connections: the list with the form for a new one, and the form that changes one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.access import Actor, roles_of
from accounts.asking import ask
from accounts.errors import SHOWN_IN_PLACE
from accounts.models import Role, Tenant
from accounts.rest.actors import actor_of
from accounts.tenancy import current_tenant
from storage import connections
from storage.models import Connection

from .views import refused


def key(label: Any) -> forms.CharField:
    """Return a field whose value is never shown again."""
    widget = forms.PasswordInput(attrs={"autocomplete": "off"})
    return forms.CharField(label=label, max_length=512, strip=False, widget=widget)


class ConnectionForm(forms.Form):
    """What a connection is. One that is there keeps a key that is left empty."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=40,
        help_text=gettext_lazy("Small letters, digits and hyphens."),
    )
    endpoint = forms.CharField(
        label=gettext_lazy("Endpoint"), max_length=253, help_text=gettext_lazy("As https://s3.example.org")
    )
    bucket = forms.CharField(label=gettext_lazy("Bucket"), max_length=63)
    access_key = key(gettext_lazy("Access key"))
    secret_key = key(gettext_lazy("Secret key"))

    def __init__(self, data: Any = None, *, there: Connection | None = None) -> None:
        first = {"name": there.name, "endpoint": there.endpoint, "bucket": there.bucket} if there else None
        super().__init__(data, initial=first, label_suffix="")
        if there is not None:
            for name in connections.KEYS:
                self.fields[name].required = False
                self.fields[name].help_text = _("Empty: the key stays as it is.")

    def values(self) -> dict[str, str]:
        return {name: value for name, value in self.cleaned_data.items() if value and name != "tenant"}


class NewConnectionForm(ConnectionForm):
    tenant = forms.ModelChoiceField(
        Tenant.objects.none(), label=gettext_lazy("Tenant"), to_field_name="slug", empty_label=None
    )
    field_order = ("tenant", "name", "endpoint", "bucket")

    def __init__(self, actor: Actor, data: Any = None, *, tenant: Tenant | None = None) -> None:
        super().__init__(data)
        able = [found.pk for found, role in roles_of(actor) if role != Role.VIEWER]
        tenants = self.fields["tenant"]
        assert isinstance(tenants, forms.ModelChoiceField)
        tenants.queryset = Tenant.objects.filter(pk__in=able).order_by("name")
        tenants.initial = tenant and tenant.slug
        self.may_create = bool(able)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def listed(request: HttpRequest) -> HttpResponse:
    """List the person's connections; members add theirs here."""
    actor = actor_of(request)
    form = NewConnectionForm(actor, request.POST or None, tenant=current_tenant(request))
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                made = connections.create(actor, form.cleaned_data["tenant"].slug, form.values())
            except SHOWN_IN_PLACE as refusal:
                status = refused(request, actor, form, refusal)
            else:
                messages.success(request, _("“%(name)s” was added.") % {"name": made.name})
                return redirect("connections")
    context = {
        "section": "volumes",
        "rows": connections.visible(actor),
        "form": form if form.may_create else None,
    }
    return render(request, "storage/connections.html", context, status=status)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def one(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    found = connections.get(actor, id)
    form = ConnectionForm(request.POST or None, there=found)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                changed = connections.change(actor, found, form.values())
            except SHOWN_IN_PLACE as refusal:
                status = refused(request, actor, form, refusal)
            else:
                if changed:
                    messages.success(request, _("Saved. Workspaces have it from their next start on."))
                return redirect("connections")
    context = {"section": "volumes", "connection": found, "form": form}
    return render(request, "storage/connection.html", context, status=status)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    found = connections.get(actor, id)
    if request.method == "GET":
        title = _("Delete the connection “%(name)s” with its keys?") % {"name": found.name}
        effects = [
            _("What starts later cannot use it. The bucket and its files are not touched."),
            _("What runs keeps its keys until it stops."),
        ]
        return ask(request, "volumes", reverse("connections"), title, effects, _("Delete"))
    connections.delete(actor, found)
    messages.success(request, _("“%(name)s” was deleted.") % {"name": found.name})
    return redirect("connections")
