"""Certificates of a site's own authorities, which programs in workspaces and jobs are to trust. Pure."""

from __future__ import annotations

from cryptography import x509
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

LONGEST = 128 * 1024  # a ConfigMap holds 1 MiB, with the start script
FILE = "certificates.pem"  # beside the start script, which makes a bundle of it and the image's own


def validate(text: str) -> None:
    """Raise ValidationError for a text that is not certificates as PEM, or holds a private key."""
    if "PRIVATE KEY" in text:
        raise ValidationError(_("This holds a private key. Enter certificates alone."))
    try:
        x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        raise ValidationError(
            _("These are not certificates as PEM, as in -----BEGIN CERTIFICATE-----.")
        ) from None


def files(text: str) -> dict[str, str]:
    """Return the file for pods, by its name; none if nothing is to be trusted."""
    return {FILE: text.replace("\r\n", "\n").strip() + "\n"} if text.strip() else {}
