"""The launch form: the same LaunchSpec as the API's, in words and units for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.errors import Refusal
from accounts.models import Tenant

from .launch import LARGEST_DISK_MIB, LaunchSpec
from .models import Image
from .sizing import SizeAsked
from .suggestions import PoolChoice

MIB_PER_GIB = 1024
# How a refusal names what the form calls otherwise.
FORM_FIELDS = {
    "disk_mib": "disk_gib",
    "pool": "flavor",
    "gpus": "flavor",
    "cpu": "flavor",
    "memory_mib": "flavor",
}


class EnvironmentField(forms.CharField):
    """NAME=value, one a line."""

    def __init__(self, **options: Any) -> None:
        widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "autocomplete": "off"})
        super().__init__(required=False, widget=widget, strip=False, **options)

    def to_python(self, value: Any) -> dict[str, str]:  # type: ignore[override]
        values: dict[str, str] = {}
        for number, line in enumerate(str(value or "").splitlines(), start=1):
            name, separator, text = line.partition("=")
            if not line.strip():
                continue
            if not separator:
                raise forms.ValidationError(
                    gettext("Line %(n)d has no “=”. Write NAME=value.") % {"n": number}
                )
            if name.strip() in values:
                raise forms.ValidationError(
                    gettext("Line %(n)d names a variable for the second time.") % {"n": number}
                )
            values[name.strip()] = text
        return values


class LaunchForm(forms.Form):
    tenant = forms.ChoiceField(label=_("Tenant"), help_text=_("Whose share of the GPUs it uses."))
    image = forms.ChoiceField(label=_("Image"), widget=forms.RadioSelect)
    flavor = forms.ChoiceField(
        label=_("Size"),
        widget=forms.RadioSelect,
        error_messages={"required": _("Choose a size.")},
    )
    name = forms.CharField(
        label=_("Name"),
        max_length=63,
        help_text=_("1 to 63 letters, digits, dots, dashes and spaces. You can change it later."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    disk_gib = forms.IntegerField(
        label=_("Local disk"),
        required=False,
        min_value=0,
        max_value=LARGEST_DISK_MIB // MIB_PER_GIB,
        help_text=_(
            "Fast, at /disk, kept when you stop. 0 for none, at most 16384. Your home comes in any case."
        ),
    )
    repository = forms.CharField(
        label=_("Git repository"),
        required=False,
        max_length=1024,
        help_text=_("Cloned into your home at the first start. As https://host/group/project.git"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "inputmode": "url"}),
    )
    env = EnvironmentField(
        label=_("Environment"),
        help_text=_("NAME=value, one a line; 64 KiB at most. Others in your tenant do not see it."),
    )
    secret_env = EnvironmentField(
        label=_("Secret environment"),
        help_text=_("The same for passwords and tokens: stored encrypted, and never shown again."),
    )

    def __init__(
        self,
        data: QueryDict | None,
        initial: dict[str, Any],
        *,
        tenants: Sequence[Tenant],
        images: Sequence[Image],
        pools: Sequence[PoolChoice],
    ) -> None:
        super().__init__(data, initial=initial, label_suffix="")
        flavors = [(flavor.slug, flavor.name) for choice in pools for flavor in choice.flavors]
        self._choose("tenant", [(tenant.slug, tenant.name) for tenant in tenants])
        self._choose("image", [(image.slug, image.name) for image in images])
        self.images = images
        self._choose("flavor", flavors)

    def _choose(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices
        if self.initial.get(name) not in dict(choices):
            self.initial[name] = choices[0][0] if choices else None

    @property
    def chosen_flavor(self) -> str | None:
        chosen: str | None = self["flavor"].value()
        return chosen

    def spec(self) -> LaunchSpec:
        """Of a valid form."""
        data = self.cleaned_data
        return LaunchSpec(
            tenant=data["tenant"],
            name=data["name"],
            image=data["image"],
            size=SizeAsked(flavor=data["flavor"]),
            disk_mib=(data["disk_gib"] or 0) * MIB_PER_GIB,
            env=data["env"],
            secret_env=data["secret_env"],
            repository=data["repository"],
        )

    def refuse(self, refusal: Refusal) -> None:
        """Show what the launch refused, at the field that it is about."""
        for name, texts in refusal.fields.items():
            field = FORM_FIELDS.get(name, name)
            self.add_error(field if field in self.fields else None, texts)
        if not refusal.fields:
            self.add_error(None, f"{refusal.message} {refusal.hint}".strip())

    @property
    def has_folded_errors(self) -> bool:
        return any(self[name].errors for name in ("disk_gib", "repository", "env", "secret_env"))
