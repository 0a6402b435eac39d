"""Forms that create and change a volume. They check form only; `changes.py` decides what is possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import QuerySet
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.access import Actor, roles_of
from accounts.models import Membership, Role, Tenant
from clusters.models import Cluster
from storage.adoption import KINDS, Found
from storage.changes import Wish
from storage.copies import LONGEST_NOTE
from storage.models import Kind, Phase, Shared, Snapshot, Volume
from storage.sources import Source

MIB = 1024
CREATED = (Kind.DATASET, Kind.DISK, Kind.SCRATCH)
KIND_HELP = _(
    "A dataset is on the network: every workspace can mount it, and you can publish versions of it. A local disk is "
    "fast and on one node: a workspace that mounts it starts there. Scratch is empty at each start, and gone with each "
    "run."
)


class NameForm(forms.Form):
    name = forms.CharField(
        label=_("Name"), max_length=63, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    shared = forms.ChoiceField(
        label=_("Shared with"),
        choices=Shared.choices,
        initial=Shared.NO,
        help_text=_("People of your tenant who may mount it. Nobody outside of the tenant can."),
    )


class SizeForm(forms.Form):
    size_gib = forms.DecimalField(
        label=_("Volume size"),
        min_value=0,
        max_digits=9,
        decimal_places=3,
        help_text=_("It can grow later, not shrink."),
    )

    def size_mib(self) -> int:
        return int(self.cleaned_data["size_gib"] * MIB)


class CreateForm(NameForm, SizeForm):
    tenant = forms.ModelChoiceField(
        Tenant.objects.none(), label=_("Tenant"), to_field_name="slug", empty_label=None
    )
    cluster = forms.ModelChoiceField(
        Cluster.objects.none(), label=_("Cluster"), to_field_name="slug", empty_label=None
    )
    kind = forms.ChoiceField(
        label=_("Kind"), choices=[(kind.value, kind.label) for kind in CREATED], help_text=KIND_HELP
    )

    field_order = ("name", "kind", "size_gib", "shared", "tenant", "cluster")

    def __init__(self, actor: Actor, data: Any = None, *, tenant: Tenant | None = None) -> None:
        first = {"size_gib": 10} | ({"tenant": tenant.slug} if tenant else {})
        super().__init__(data, initial=first)
        tenants, clusters = self.fields["tenant"], self.fields["cluster"]
        assert isinstance(tenants, forms.ModelChoiceField)
        assert isinstance(clusters, forms.ModelChoiceField)
        able = [found.pk for found, role in roles_of(actor) if role != Role.VIEWER]
        offer(tenants, Tenant.objects.filter(pk__in=able).order_by("name"))
        offer(clusters, Cluster.objects.order_by("name"))
        self.may_create = bool(able)

    def asked(self) -> tuple[str, Wish]:
        values = self.cleaned_data
        names = ("name", "kind", "shared")
        wish = Wish(
            **{name: values[name] for name in names}, size_mib=self.size_mib(), cluster=values["cluster"].slug
        )
        return values["tenant"].slug, wish


class AdoptForm(forms.Form):
    """Storage that is there already, and the volume that it becomes."""

    name = forms.CharField(
        label=_("Name"), max_length=63, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    kind = forms.ChoiceField(label=_("Kind"), choices=[(kind.value, kind.label) for kind in KINDS])
    persistent_volume = forms.CharField(
        label=_("Persistent volume"),
        max_length=253,
        required=False,
        help_text=_("One that is Available or Released: no PVC has it."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    claim = forms.CharField(
        label=_("Or a PVC of the tenant’s namespace"),
        max_length=253,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    owner = forms.CharField(
        label=_("Owner"),
        max_length=150,
        help_text=_("User name of a member of the tenant, who has to confirm what is in it."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    tenant = forms.ModelChoiceField(
        Tenant.objects.none(), label=_("Tenant"), to_field_name="slug", empty_label=None
    )
    cluster = forms.ModelChoiceField(
        Cluster.objects.none(), label=_("Cluster"), to_field_name="slug", empty_label=None
    )

    def __init__(self, data: Any = None, *, tenant: Tenant | None = None) -> None:
        super().__init__(data, initial={"tenant": tenant.slug} if tenant else {})
        tenants, clusters = self.fields["tenant"], self.fields["cluster"]
        assert isinstance(tenants, forms.ModelChoiceField)
        assert isinstance(clusters, forms.ModelChoiceField)
        offer(tenants, Tenant.objects.order_by("name"))
        offer(clusters, Cluster.objects.order_by("name"))

    def asked(self) -> tuple[str, Found]:
        values = dict(self.cleaned_data)
        tenant = values.pop("tenant").slug
        return tenant, Found(**values | {"cluster": values["cluster"].slug})


def offer(choice: forms.ModelChoiceField[Any], rows: QuerySet[Any]) -> None:
    """Offer these. The only one is not shown: there is nothing to choose."""
    choice.queryset = rows
    found = list(rows[:2])
    if len(found) == 1:
        choice.widget, choice.initial = forms.HiddenInput(), found[0].slug


class NoteForm(forms.Form):
    note = forms.CharField(
        label=_("Note"),
        max_length=LONGEST_NOTE,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class CloneForm(forms.Form):
    """Name of a new volume; `snapshot`: the copy that it begins with, empty for the volume as it is now."""

    name = forms.CharField(
        label=_("Name of the new volume"),
        max_length=63,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    snapshot = forms.ChoiceField(label=_("Files"), required=False)

    def __init__(self, volume: Volume, taken: Sequence[Snapshot], data: Any = None) -> None:
        super().__init__(data)
        choice = self.fields["snapshot"]
        assert isinstance(choice, forms.ChoiceField)
        usable = [row for row in taken if row.phase in (Phase.PENDING, Phase.READY)]
        choice.choices = [("", _("as they are now")), *((str(row.pk), label_of(row)) for row in usable)]

    def wish(self, volume: Volume) -> Wish:
        values = self.cleaned_data
        taken = UUID(values["snapshot"]) if values["snapshot"] else None
        return Wish(
            name=values["name"],
            kind=volume.kind,
            size_mib=max(volume.size_mib, volume.requested_mib),
            cluster=volume.cluster.slug,
            begins=Source(snapshot=taken) if taken else Source(volume=volume.pk),
        )


def label_of(row: Snapshot) -> str:
    """Return how a form calls a snapshot or version."""
    when = date_format(localtime(row.created_at), "DATETIME_FORMAT")
    if row.number is not None:
        return " · ".join(
            filter(None, [gettext("version %(number)s") % {"number": row.number}, when, row.note])
        )
    return " · ".join(filter(None, [gettext("snapshot"), when, row.note]))


class TransferForm(forms.Form):
    username = forms.ChoiceField(label=_("New owner"))

    def __init__(self, volume: Volume, data: Any = None) -> None:
        super().__init__(data)
        people = Membership.objects.filter(tenant=volume.tenant).exclude(role=Role.VIEWER)
        names = people.exclude(user=volume.owner).order_by("user__username")
        choice = self.fields["username"]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [(name, name) for name in names.values_list("user__username", flat=True)]
