"""Forms that book and change a booking. They check form only; `rules.py` decides what may be booked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.access import Actor, owned_tenants
from accounts.errors import Refusal
from accounts.forms import show_refusal
from accounts.models import Tenant
from quotas.bookings.rules import LONGEST_TITLE, MOST_PLACES, NotFree, Wish
from quotas.models import Booking, Pool

AS_TYPED = "%Y-%m-%dT%H:%M"
CALLED = {"from": "starts_at", "to": "ends_at"}


class MomentField(forms.DateTimeField):
    """Time in the reader's time zone. An hour that a clock change skips or repeats is refused."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format=AS_TYPED)

    def clean(self, value: Any) -> Any:
        moment = super().clean(value)
        try:
            return moment and moment.astimezone(UTC)
        except OverflowError:
            raise forms.ValidationError(_("There is no such time.")) from None


class ChangeForm(forms.Form):
    title = forms.CharField(
        label=_("Purpose"),
        max_length=LONGEST_TITLE,
        help_text=_("People of your tenant see it."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    starts_at = MomentField(label=pgettext_lazy("a time", "From"))
    ends_at = MomentField(label=pgettext_lazy("a time", "To"))
    places = forms.IntegerField(
        label=_("Places"),
        min_value=1,
        max_value=MOST_PLACES,
        initial=1,
        help_text=_("Each is for one workspace."),
    )

    def refuse(self, refusal: Refusal) -> None:
        """Show a refusal beside its fields. NotFree concerns them all: the page shows it beneath."""
        if not isinstance(refusal, NotFree):
            show_refusal(self, refusal, lambda name: CALLED.get(name, name))

    @staticmethod
    def initial_of(booking: Booking) -> dict[str, Any]:
        return {name: getattr(booking, name) for name in ("title", "starts_at", "ends_at", "places")}

    def wish(self, booking: Booking) -> Wish:
        """Return the changed booking. An unchanged time keeps its seconds, which the form does not show."""
        was, asked = Wish.of(booking), dict(self.cleaned_data)
        for name in ("starts_at", "ends_at"):
            if asked[name] == getattr(was, name).replace(second=0, microsecond=0):
                asked[name] = getattr(was, name)
        return Wish(**asked, gpus_each=was.gpus_each)


class BookingForm(ChangeForm):
    tenant = forms.ModelChoiceField(
        Tenant.objects.none(), label=_("Tenant"), to_field_name="slug", empty_label=None
    )
    pool = forms.ModelChoiceField(
        Pool.objects.none(), label=_("Pool"), to_field_name="slug", empty_label=None
    )
    gpus_each = forms.DecimalField(
        label=_("GPUs each"), min_value=0, max_value=4096, max_digits=8, decimal_places=4, initial=1,
        help_text=_("On one node."),
    )  # fmt: skip

    field_order = ("tenant", "pool", "title", "starts_at", "ends_at", "places", "gpus_each")

    def __init__(self, actor: Actor, data: Any = None, *, asked: Any = None) -> None:
        """Suggest the next full hour. `asked`: values from the page's address."""
        begins = (timezone.localtime() + timedelta(hours=1)).replace(minute=0, second=0, microsecond=0)
        initial = {"starts_at": begins, "ends_at": begins + timedelta(hours=2)}
        super().__init__(
            data,
            initial={
                **initial,
                **{name: asked[name] for name in self.base_fields if asked and name in asked},
            },
        )
        tenant, pool = self.fields["tenant"], self.fields["pool"]
        assert isinstance(tenant, forms.ModelChoiceField)
        assert isinstance(pool, forms.ModelChoiceField)
        tenant.queryset = owned_tenants(actor).order_by("name")
        pool.queryset = Pool.objects.filter(is_open=True).exclude(resource_name="").select_related("cluster")

    def asked(self) -> tuple[Tenant, Pool, Wish]:
        values = dict(self.cleaned_data)
        tenant, pool = values.pop("tenant"), values.pop("pool")
        return tenant, pool, Wish(**{**values, "gpus_each": Fraction(values["gpus_each"])})

    def query_at(self, starts_at: datetime) -> str:
        """Return the query of this form with another start, for as long."""
        _tenant, _pool, wish = self.asked()
        moved = {"starts_at": starts_at, "ends_at": starts_at + (wish.ends_at - wish.starts_at)}
        typed = {name: timezone.localtime(moment).strftime(AS_TYPED) for name, moment in moved.items()}
        return urlencode({name: self[name].value() or "" for name in self.fields} | typed)
