"""Forms of class launches: a new one, more people, and more time. They check form only; the use cases decide."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.access import Actor, owned_tenants
from accounts.errors import Refusal
from accounts.forms import show_refusal
from quotas.bookings.rules import in_words
from quotas.models import Booking
from storage.models import Shared, Volume
from storage.mounts import choosing
from workloads.longest import LONGEST_MINUTES
from workloads.pages.fields import plain_text
from workspaces.classes.api import kept_of
from workspaces.classes.launching import MOST_PEOPLE, ClassWish
from workspaces.models import ClassLaunch, Template

BETWEEN = re.compile(r"[\s,;]+")
LONGEST_NAME = 150
NOW, SIGN_IN = "now", "sign_in"


class PeopleField(forms.CharField):
    """User names, with spaces, commas or new lines between them."""

    def __init__(self) -> None:
        widget = forms.Textarea(
            attrs={"rows": 6, "spellcheck": "false", "autocomplete": "off", "autocapitalize": "none"}
        )
        super().__init__(
            label=_("People"), widget=widget, help_text=_("User names, one per line or with commas.")
        )

    def to_python(self, value: Any) -> list[str]:  # type: ignore[override]
        names = [name for name in BETWEEN.split(super().to_python(value) or "") if name]
        if len(names) > MOST_PEOPLE or any(len(name) > LONGEST_NAME for name in names):
            raise forms.ValidationError(_("Name at most 200 people, by their user names."))
        return names

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(data)


class PeopleForm(forms.Form):
    people = PeopleField()


class MinutesForm(forms.Form):
    minutes = forms.IntegerField(label=_("Minutes"), min_value=1, max_value=LONGEST_MINUTES, initial=30)


class TemplateField(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.name} ({obj.tenant.name})"


class BookingField(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.title}: {obj.pool.name}, {in_words(obj.starts_at)} ({obj.tenant.name})"


class ClassForm(PeopleForm):
    template = TemplateField(
        Template.objects.none(),
        label=_("Template"),
        empty_label=None,
        help_text=_("What each person gets. Fill in the launch form and save it as a template."),
    )
    name = forms.CharField(
        label=_("Name"),
        required=False,
        max_length=63,
        widget=plain_text(),
        help_text=_("Of the class and of each workspace. Empty: the template's."),
    )
    when = forms.ChoiceField(
        label=_("Launch"),
        choices=[(NOW, _("all now, or when the booking begins")), (SIGN_IN, _("each at their next sign-in"))],
    )
    booking = BookingField(
        Booking.objects.none(),
        label=_("Booking"),
        required=False,
        empty_label=_("none"),
        help_text=_("Each person takes one of its places."),
    )
    hand_out = forms.ChoiceField(
        label=_("Hand out a volume"),
        required=False,
        help_text=_("All mount it read-only. It has to be shared with your team."),
    )
    field_order = ("template", "name", "people", "when", "booking", "hand_out")

    def __init__(self, actor: Actor, data: Any = None, *, asked: Any = None) -> None:
        """Offer what belongs to tenants that the actor owns. `asked`: values from the page's address."""
        named = {name: asked[name] for name in self.base_fields if asked and name in asked}
        super().__init__(data, initial=named)
        self._actor = actor
        tenants = owned_tenants(actor)
        if asked and (slug := asked.get("tenant", "").replace("\0", "")):
            tenants = tenants.filter(slug=slug)
        template, booking = self.fields["template"], self.fields["booking"]
        assert isinstance(template, forms.ModelChoiceField)
        assert isinstance(booking, forms.ModelChoiceField)
        template.queryset = Template.objects.filter(tenant__in=tenants).select_related("tenant")
        live = Booking.objects.filter(tenant__in=tenants, cancelled_at=None, ends_at__gt=timezone.now())
        booking.queryset = live.select_related("pool", "tenant").order_by("starts_at")
        offers = {key: one for key, one in choosing.offers(actor).items() if one.wish.read_only}
        shared = Volume.objects.filter(
            ~Q(shared=Shared.NO), pk__in=[one.wish.volume for one in offers.values()]
        )
        theirs = set(shared.values_list("pk", flat=True))
        self._offers = {key: one for key, one in offers.items() if one.wish.volume in theirs}
        hand_out = self.fields["hand_out"]
        assert isinstance(hand_out, forms.ChoiceField)
        hand_out.choices = [
            ("", _("nothing")),
            *((key, f"{one.label} ({one.about}) → {one.wish.path}") for key, one in self._offers.items()),
        ]

    def wish(self) -> ClassWish:
        """Return what the valid form asks for."""
        values, volumes = self.cleaned_data, []
        if values["hand_out"]:
            wish = self._offers[values["hand_out"]].wish
            volumes = [
                {"volume": wish.volume, "path": wish.path, "read_only": True, "version": wish.version or None}
            ]
        template = values["template"]
        return ClassWish(
            tenant=template.tenant,
            name=values["name"] or template.name,
            people=values["people"],
            template=template,
            kept=kept_of(template.tenant, template, None, volumes),
            booking=values["booking"],
            at_sign_in=values["when"] == SIGN_IN,
        )

    def refuse(self, refusal: Refusal) -> None:
        show_refusal(self, refusal, lambda name: {"volumes": "hand_out"}.get(name, name))
        if refusal.fields and refusal.hint:
            self.add_error(None, refusal.hint)


def again(row: ClassLaunch, people: list[str]) -> ClassWish:
    """Return a request that adds these people, and tries refused ones among them again."""
    return ClassWish(tenant=row.tenant, name=row.name, people=people)
