"""Images that people ask for: entries of the catalogue, or an image of their own by its reference.

A tenant's list of registries says which references its people may use. An image by reference becomes a row of its
tenant, once for each reference: whatever refers to an image works the same for both.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from uuid import uuid4

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from accounts.errors import Invalid
from accounts.models import Tenant
from clusters.references import allows, prefixes_of, valid_reference
from quotas.models import TenantLimit

from .models import Image

CODE = "image_not_allowed"
LONGEST_REFERENCE = 512
OWN = "own-"  # begins the slugs of images by reference
_LONGEST_NAME = 120


def catalogue() -> QuerySet[Image]:
    """Images that everybody is offered."""
    return Image.objects.filter(is_active=True, tenant=None)


def prefixes(tenant: Tenant) -> list[str]:
    """Registries, or parts of them, from which the tenant's people may run images by reference."""
    limit = TenantLimit.of(tenant)
    return prefixes_of(limit.image_prefixes) if limit else []


def registries(tenants: Iterable[Tenant]) -> dict[str, list[str]]:
    """Prefixes by the slug of each tenant that may use images by reference, in one query."""
    limits = TenantLimit.objects.filter(tenant__in=list(tenants)).exclude(image_prefixes="")
    found = {
        limit.tenant.slug: prefixes_of(limit.image_prefixes) for limit in limits.select_related("tenant")
    }
    return {slug: lines for slug, lines in found.items() if lines}


def named(image: Image) -> dict[str, str]:
    """Fields of a request that ask for this image again."""
    return {"image_reference": image.reference} if image.is_own else {"image": image.slug}


def asked(
    tenant: Tenant, slug: str | None, reference: str | None
) -> tuple[Image | None, dict[str, list[str]]]:
    """Return the image that is asked for, and what is wrong with the request by field.

    Give a slug or a reference. Writes nothing: an image that was never named by its reference is not saved. Raise
    Invalid if the tenant may not use the reference.
    """
    if not reference:
        return offered(tenant, slug or "")
    if slug:
        return None, {"image_reference": [_("Give an image or a reference, not both.")]}
    if faults := _faults(reference):
        return None, {"image_reference": faults}
    image = Image.objects.filter(tenant=tenant, reference=reference).first() or _new(tenant, reference)
    refuse_not_allowed(image)
    return image, {}


def offered(tenant: Tenant, slug: str) -> tuple[Image | None, dict[str, list[str]]]:
    """Return the entry of the catalogue, or the tenant's own image, with this slug; else a fault."""
    if (image := _find(tenant, slug)) is None:
        text = _("There is no image “%(slug)s”. See the list of images.") % {"slug": slug}
        return None, {"image": [text]}
    refuse_not_allowed(image)
    return image, {}


def former(tenant: Tenant, slug: str) -> Image | None:
    """Return the image with this slug if the tenant can still choose it."""
    image = _find(tenant, slug)
    return image if image and is_allowed(image) else None


def _find(tenant: Tenant, slug: str) -> Image | None:
    is_offered = Q(tenant=None) | Q(tenant=tenant)
    return Image.objects.filter(is_offered, slug=slug, is_active=True).select_related("tenant__limit").first()


def kept(image: Image) -> Image:
    """Return the image as a row: saved, if it was named for the first time. Inside a transaction."""
    if not image._state.adding:
        return image
    Image.objects.bulk_create([image], ignore_conflicts=True)  # somebody may name it at the same time
    return Image.objects.get(tenant=image.tenant_id, reference=image.reference)


def is_allowed(image: Image) -> bool:
    """Return False for an image by reference from a registry that its tenant may not use, or no longer."""
    return image.tenant is None or allows(prefixes(image.tenant), image.reference)


def refuse_not_allowed(image: Image) -> None:
    """Raise Invalid if the tenant may not use the image. Entries of the catalogue are always allowed."""
    if is_allowed(image):
        return
    assert image.tenant is not None
    if allowed := prefixes(image.tenant):
        text = _("%(tenant)s may not use the image %(reference)s.")
        hint = _("Use an image from %(prefixes)s, or one of the catalogue.")
    else:
        text = _("%(tenant)s may use images of the catalogue only, not %(reference)s.")
        hint = _("Choose an image of the catalogue, or ask an admin to allow the registry.")
    text %= {"tenant": image.tenant.name, "reference": image.reference}
    hint %= {"prefixes": ", ".join(allowed)}
    raise Invalid(CODE, text, hint, fields={"image_reference": [f"{text} {hint}"]})


def shown(slug: str) -> str:
    """Return what people read for an image's slug: the slug, or the reference of an image by reference."""
    return reference_of(slug) or slug


def reference_of(slug: str | None) -> str | None:
    """Return the reference of an image by reference; None for others."""
    return (_reference(slug) or None) if slug and slug.startswith(OWN) else None


@lru_cache(maxsize=4096)
def _reference(slug: str) -> str:
    # Rows of images by reference never change.
    return (
        Image.objects.filter(slug=slug, tenant__isnull=False).values_list("reference", flat=True).first()
        or ""
    )


def _faults(reference: str) -> list[str]:
    if len(reference) > LONGEST_REFERENCE:
        return [_("Use at most %(most)d characters.") % {"most": LONGEST_REFERENCE}]
    if "://" in reference:
        return [_("Leave out http:// or https://. Write it as registry.example/team/image:tag.")]
    try:
        valid_reference(reference)
    except ValidationError as error:
        return list(error.messages)
    return []


def _new(tenant: Tenant, reference: str) -> Image:
    """An image as the catalogue's first values have it: Jupyter and SSH, for the user 1000."""
    name = reference if len(reference) <= _LONGEST_NAME else f"…{reference[1 - _LONGEST_NAME :]}"
    return Image(tenant=tenant, reference=reference, slug=f"{OWN}{uuid4().hex}", name=name)
