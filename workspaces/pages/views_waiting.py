"""Actions for a waiting workspace: switch to something that starts now, or be notified when it starts."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from accounts.errors import SHOWN_IN_PLACE
from accounts.rest.actors import actor_of
from workspaces import access
from workspaces.runs.changes import Change, Lifetime, change
from workspaces.runs.lifetime import LONGEST_MINUTES
from workspaces.sizes.sizing import SizeAsked

from .forms import MIB_PER_GIB, MOST_CPUS, MOST_GPUS, MOST_MEMORY_GIB, GpusField


class InsteadForm(forms.Form):
    """Values to change, with the names of an alternative's body; each may be left out."""

    flavor = forms.SlugField(required=False)
    pool = forms.SlugField(required=False)
    gpus = GpusField(required=False, min_value=0, max_value=MOST_GPUS, decimal_places=4)
    cpu = forms.DecimalField(required=False, min_value=0, max_value=MOST_CPUS, decimal_places=3)
    memory_mib = forms.IntegerField(required=False, min_value=1, max_value=MOST_MEMORY_GIB * MIB_PER_GIB)
    max_runtime_minutes = forms.IntegerField(required=False, min_value=1, max_value=LONGEST_MINUTES)
    notify = forms.TypedChoiceField(
        required=False,
        choices=[("true", ""), ("false", "")],
        coerce=lambda text: text == "true",
        empty_value=None,
    )

    def change(self) -> Change:
        data = self.cleaned_data
        minutes = data["max_runtime_minutes"]
        return Change(
            size=self._size(),
            lifetime=None if minutes is None else Lifetime(minutes=minutes),
            notify=data["notify"],
        )

    def _size(self) -> SizeAsked | None:
        data = self.cleaned_data
        if not data["flavor"] and not data["pool"]:
            return None
        return SizeAsked(
            flavor=data["flavor"] or None,
            pool=data["pool"] or None,
            gpus=data["gpus"],
            cpu_millicores=round(data["cpu"] * 1000) if data["cpu"] else None,
            memory_mib=data["memory_mib"],
        )


@never_cache
@login_required
@require_POST
def instead(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    workspace = access.get(actor, id)
    form = InsteadForm(request.POST)
    try:
        if form.is_valid():
            change(actor, workspace, form.change())
        else:
            access.require_own(actor, workspace)
            messages.error(request, _("Changes were not saved. Reload the page and try again."))
    except SHOWN_IN_PLACE as refusal:
        messages.error(request, f"{refusal.message} {refusal.hint}")
    return redirect("workspace", id=id)
