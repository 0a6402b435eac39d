"""The page on idle GPUs: what would have been stopped, what that frees, whose GPUs stood idle, and the policies."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from accounts.access import owned_tenants, visible_tenants
from accounts.rest.actors import actor_of
from monitoring.idle import report
from monitoring.models import IdlePolicy
from monitoring.models.idle import LONGEST_MINUTES
from quotas.models import Pool
from workloads.spans import lifetime

STOPS_SHOWN = 50
RANKED_SHOWN = 20
DAYS = (7, 14, 30)


class Asked(forms.Form):
    days = forms.TypedChoiceField(label=_("Last"), coerce=int, required=False, empty_value=None)
    minutes = forms.IntegerField(
        label=_("Idle minutes, where no policy is set"),
        required=False,
        min_value=1,
        max_value=LONGEST_MINUTES,
        widget=forms.NumberInput({"placeholder": "120"}),
    )

    def __init__(self, data: Any) -> None:
        super().__init__(data or None, initial={"days": report.DAYS}, label_suffix="")
        field = self.fields["days"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(days, lifetime(days * 24 * 60)) for days in DAYS]


@never_cache
@login_required
@require_GET
def idle(request: HttpRequest) -> HttpResponse:
    actor, form = actor_of(request), Asked(request.GET)
    values = form.cleaned_data if form.is_bound and form.is_valid() else {}
    found = report.read(
        report.seen_by(actor),
        timezone.now(),
        days=values.get("days") or report.DAYS,
        minutes=values.get("minutes"),
    )
    names = report.names_of(found.stops[:STOPS_SHOWN])
    ranks = owned_tenants(actor).exists() or actor.is_admin
    context = {
        "section": "usage",
        "form": form,
        "found": found,
        "stops": [(stop, names.get(stop.workspace, "")) for stop in found.stops[:STOPS_SHOWN]],
        "people": [one for one in found.people if one.stops][:RANKED_SHOWN] if ranks else [],
        "tenants": [one for one in found.tenants if one.stops][:RANKED_SHOWN] if ranks else [],
        "policies": policies_for(actor),
    }
    return render(request, "monitoring/idle.html", context, status=422 if form.errors else 200)


def policies_for(actor: Any) -> list[IdlePolicy]:
    """Return the policies that may hold for runs of the actor's tenants."""
    mine = Q(tenant=None) | Q(tenant__in=visible_tenants(actor))
    open_pools = Q(pool=None) | Q(pool__in=Pool.objects.filter(is_open=True))
    return list(IdlePolicy.objects.filter(mine, open_pools).select_related("tenant", "pool"))
