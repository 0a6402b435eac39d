"""Container references."""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

# The grammar of github.com/distribution/reference: [host[:port]/]path[:tag][@digest]
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
# Without a dot or a port, the first part is no host.
_HOST = rf"(?:(?:localhost|{_LABEL}(?:\.{_LABEL})+|\[[0-9a-fA-F:]+\])(?::[0-9]+)?|{_LABEL}:[0-9]+)"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}"
_DIGEST = r"[a-zA-Z][a-zA-Z0-9]*(?:[-_+.][a-zA-Z][a-zA-Z0-9]*)*:[0-9a-fA-F]{32,}"
REFERENCE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::{_TAG})?(?:@{_DIGEST})?")


def valid_reference(text: str) -> None:
    """Raise ValidationError for a text that no container runtime takes as an image."""
    if not REFERENCE.fullmatch(text):
        raise ValidationError(
            _(
                "This is no container reference. Write it as registry.example/team/image:tag, or with @sha256:…."
            )
        )
