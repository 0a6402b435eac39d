"""Forms of the pages of alerts."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.access import Actor, owned_tenants
from clusters.models import Cluster
from monitoring.alerts.routes import FOR_ADMINS, LONGEST_ADDRESS
from monitoring.models import AlertRoute, Severity
from quotas.models import Pool

Way = AlertRoute.Way
ANY = ("", _("Any"))
SEVERITIES = [(one.word, one.label) for one in reversed(Severity)]


class FilterForm(forms.Form):
    severity = forms.ChoiceField(label=_("Severity"), required=False, choices=[ANY, *SEVERITIES])
    cluster = forms.ChoiceField(label=_("Cluster"), required=False)
    search = forms.CharField(label=_("Node, GPU or volume"), required=False, max_length=120)

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        clusters = Cluster.objects.order_by("slug").values_list("slug", "name")
        self.fields["cluster"].choices = [ANY, *clusters]  # type: ignore[attr-defined]


class SilenceForm(forms.Form):
    minutes = forms.TypedChoiceField(
        label=_("Silence for"),
        coerce=int,
        choices=[
            (30, _("30 minutes")),
            (120, _("2 hours")),
            (480, _("8 hours")),
            (1440, _("1 day")),
            (10080, _("7 days")),
        ],
    )


class RouteForm(forms.Form):
    """Fields of a route. Address and secret are never filled in: empty, they stay as they are."""

    name = forms.CharField(label=_("Name"), max_length=80)
    way = forms.ChoiceField(label=_("Way"), choices=())
    address = forms.CharField(
        label=_("Address"),
        required=False,
        max_length=LONGEST_ADDRESS,
        widget=forms.TextInput({"autocomplete": "off"}),
        help_text=_("Of the webhook, bot or person. It is kept encrypted, and not shown again."),
    )
    secret = forms.CharField(
        label=_("Signing secret"),
        required=False,
        max_length=200,
        widget=forms.PasswordInput({"autocomplete": "off"}),
        help_text=_("Signs messages to webhooks, Feishu and DingTalk. Slack and Mattermost have none."),
    )
    least_severity = forms.ChoiceField(label=_("From severity"), choices=SEVERITIES, initial="warning")
    tenant = forms.ChoiceField(label=_("Only of the tenant"), required=False, choices=())
    cluster = forms.ChoiceField(label=_("Only of the cluster"), required=False, choices=())
    pool = forms.ChoiceField(label=_("Only of the pool"), required=False, choices=())
    escalates_after_minutes = forms.IntegerField(
        label=_("Only if nobody acknowledged it within"),
        required=False,
        min_value=1,
        max_value=1440,
        help_text=_("Minutes. Empty: at once."),
    )
    every_minutes = forms.IntegerField(
        label=_("Heartbeat every"),
        required=False,
        min_value=1,
        max_value=1440,
        help_text=_("Minutes. For heartbeats."),
    )
    enabled = forms.BooleanField(label=_("Enabled"), required=False, initial=True)

    def __init__(self, actor: Actor, data: Any = None, *, route: AlertRoute | None = None) -> None:
        super().__init__(data, initial=_initial(route) if route else None)
        self.route = route
        tenants = list(owned_tenants(actor).order_by("name").values_list("slug", "name"))
        ways = [one for one in Way if one != Way.ADMINS and (actor.is_admin or one not in FOR_ADMINS)]
        choices: dict[str, list[Any]] = {
            "way": [(one.value, one.label) for one in ways],
            "tenant": [*([ANY] if actor.is_admin else []), *tenants],
            "cluster": [ANY, *Cluster.objects.order_by("slug").values_list("slug", "name")],
            "pool": [ANY, *Pool.objects.order_by("slug").values_list("slug", "name")],
        }
        for name, offered in choices.items():
            self.fields[name].choices = offered  # type: ignore[attr-defined]
        if not actor.is_admin:
            for name in ("every_minutes", "cluster", "pool"):
                del self.fields[name]
        for name in ("way", "tenant") if route else ():
            del self.fields[name]
        if route is not None and route.way == Way.ADMINS:
            del self.fields["address"], self.fields["secret"]

    def values(self) -> dict[str, Any]:
        """Return what a use case takes: an empty address or secret is left out."""
        data = dict(self.cleaned_data)
        for name in ("address", "secret", "every_minutes", "tenant"):
            if name in data and not data[name]:
                del data[name]
        return data


def _initial(route: AlertRoute) -> dict[str, Any]:
    return {
        "name": route.name,
        "least_severity": Severity(route.least_severity).word,
        "cluster": route.cluster.slug if route.cluster else "",
        "pool": route.pool.slug if route.pool else "",
        "escalates_after_minutes": route.escalates_after_minutes,
        "every_minutes": route.every_minutes,
        "enabled": route.is_enabled,
    }
