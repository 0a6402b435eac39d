"""Choice of an image in a form: of the catalogue, or an own one by its reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.errors import Refusal
from accounts.models import Tenant
from workloads import images
from workloads.models import Image

from .fields import plain_text

# Value of the image field for an image by reference. No slug has this character.
OWN = "@"


def own_image() -> forms.CharField:
    """Field of an image by its reference."""
    return forms.CharField(
        label=_("Container image"),
        required=False,
        max_length=images.LONGEST_REFERENCE,
        widget=plain_text(
            placeholder="registry.example/team/image:tag",
            **{"aria-describedby": "id_image_reference_helptext id_image_reference_error"},
        ),
    )


def first_image(image: Image) -> dict[str, str]:
    """First values of the fields that choose the image."""
    return {"image": OWN, "image_reference": image.reference} if image.is_own else {"image": image.slug}


class ChoosesImage(forms.Form):
    """Fields that choose the image of a new workspace or job."""

    tenants: Sequence[Tenant]  # in which it may be launched
    not_offered: dict[str, Any]

    image = forms.ChoiceField(label=_("Image"), widget=forms.RadioSelect)
    image_reference = own_image()

    def offer_images(self, catalogue: Sequence[Image], registries: Mapping[str, Sequence[str]]) -> None:
        """Offer the catalogue, and an own image if a tenant may use some. `registries`: by tenant."""
        self.images, self.registries = catalogue, registries
        own = [(OWN, gettext("Own image"))] if registries else []
        choices = [*((image.slug, image.name) for image in catalogue), *own]
        field = self.fields["image"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices
        if (wanted := self.initial.get("image")) not in dict(choices):
            if wanted:
                self.not_offered["image"] = self.initial.get("image_reference") or wanted
            self.initial["image"] = choices[0][0] if choices else None

    def own_image_faults(self) -> dict[str, list[str]]:
        """Find the image that is named by its reference. The reference counts only if that is chosen."""
        self._own_image = None
        if self.cleaned_data.get("image") != OWN:
            self.errors.pop("image_reference", None)
            self.cleaned_data["image_reference"] = ""
            return {}
        reference = self.cleaned_data.get("image_reference")
        tenant = next((one for one in self.tenants if one.slug == self.cleaned_data.get("tenant")), None)
        if tenant is None or "image_reference" in self.errors:
            return {}
        if not reference:
            return {"image_reference": [gettext("Fill this in.")]}
        try:
            self._own_image, faults = images.asked(tenant, None, reference)
        except Refusal as refusal:
            return {name: list(texts) for name, texts in refusal.fields.items()}
        return faults

    @property
    def chosen_image(self) -> Image | None:
        chosen = self.cleaned_data.get("image")
        return (
            self._own_image
            if chosen == OWN
            else next((one for one in self.images if one.slug == chosen), None)
        )

    @property
    def chooses_own_image(self) -> bool:
        return bool(self["image"].value() == OWN)

    @property
    def own_images_from(self) -> str:
        """Registries of the tenants that may use images by reference; of each tenant, if there are several."""
        lists = [", ".join(lines) for lines in self.registries.values()]
        if len(self.tenants) == 1:
            return lists[0]
        names = {tenant.slug: tenant.name for tenant in self.tenants}
        return "; ".join(f"{names[slug]}: {text}" for slug, text in zip(self.registries, lists, strict=True))
