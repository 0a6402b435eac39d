"""Why an image does not come to a node: what containerd, CRI-O and Docker tell through the kubelet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from clusters.causes.cause import Audience, Cause

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


def _http(*statuses: int) -> str:
    """Of HTTP's answers, not of an image's tag."""
    return rf"(?<![:./-])\b({'|'.join(map(str, statuses))})\b"


# The reference that a message is about, where it names one.
IMAGE = r'(?:image(?: name| tag)?|reference)\W{1,3}(?P<image>[^\s"\\,]+)'


def _image(
    code: str, pattern: str, sentence: StrOrPromise, hint: StrOrPromise, audience: Audience = "you"
) -> Cause:
    return Cause(code, pattern, sentence, hint, audience, details=IMAGE)


CAUSES = (
    _image(
        "image_name_invalid",
        r"InvalidImageName|couldn't parse image|invalid reference format",
        _("“%(image)s” is not a valid name of an image."),
        _("Choose another image. An admin has to correct this one in the catalogue."),
        "admin",
    ),
    _image(
        "image_never_pulled",
        r"ErrImageNeverPull|is not present with pull policy of Never",
        _("The image %(image)s is not on the node, and may not be pulled."),
        _("Choose another image, or tell an admin to put it on the nodes."),
        "admin",
    ),
    _image(
        "image_runtime_down",
        r"Error while dialing|ImageInspectError|Failed to inspect image|containerd\.sock|crio\.sock",
        _("The container runtime of the node does not answer, so no image can be looked at."),
        _("An admin has to look at containerd (or CRI-O) on that node. Starting again may pick another one."),
        "admin",
    ),
    _image(
        "image_rate_limited",
        rf"toomanyrequests|too many requests|pull rate limit|{_http(429)}",
        _("The registry of %(image)s refuses more pulls for now: its limit is reached."),
        _("It is tried again by itself. An admin can add credentials or a mirror of the registry."),
        "admin",
    ),
    _image(
        "image_node_disk_full",
        r"no space left on device|disk quota exceeded",
        _("The node has no room left for the image %(image)s."),
        _("An admin has to free disk space there. Starting again may pick another node."),
        "admin",
    ),
    _image(
        "image_certificate_untrusted",
        r"x509|certificate signed by unknown|tls: |certificate has expired|HTTP response to HTTPS client",
        _("The nodes do not trust the registry of %(image)s, so they do not pull from it."),
        _("An admin has to install the registry's certificate on the nodes."),
        "admin",
    ),
    _image(
        "image_registry_unknown",
        r"no such host|server misbehaving|Name or service not known|Temporary failure in name resolution"
        r"|lookup \S+: Try again",
        _("The registry of %(image)s is not known by that name."),
        _("Check the image's name. If it is right, an admin has to look at the nodes' name service."),
        "admin",
    ),
    _image(
        "image_denied",
        rf"pull access denied|unauthorized|authentication required|denied|{_http(401, 403)}|basic auth",
        _("The registry does not hand out %(image)s: it is private, or does not exist there."),
        _(
            "Check the image's name. For a private one, an admin adds pull credentials to the cluster's settings."
        ),
        "admin",
    ),
    _image(
        "image_not_found",
        rf"not found|manifest unknown|name unknown|does not exist|repository .* not|{_http(404)}",
        _("The image %(image)s does not exist in its registry."),
        _("Check its name and tag, or choose another image."),
    ),
    _image(
        "image_wrong_platform",
        r"no match for platform|no matching manifest|exec format error",
        _("The image %(image)s was not built for this kind of processor."),
        _("Choose another image, or one built for several platforms."),
    ),
    _image(
        "image_registry_unreachable",
        r"i/o timeout|deadline exceeded|context canceled|connection refused|connection reset|unexpected EOF|: EOF"
        r"|TLS handshake timeout|no route to host|network is unreachable|pull QPS exceeded"
        rf"|{_http(500, 502, 503, 504)}",
        _("The registry of %(image)s does not answer."),
        _("It is tried again by itself. Tell an admin if it lasts: the nodes may need a proxy or a mirror."),
        "admin",
    ),
    _image(
        "image_broken",
        r"failed to extract layer|failed to unpack|unexpected commit digest|failed size validation|archive/tar",
        _("The image %(image)s arrived damaged."),
        _("It is tried again by itself. If it lasts, choose another image and tell an admin."),
        "admin",
    ),
    _image(
        "image_pull_backoff",
        r"Back-off pulling image|ImagePullBackOff|ErrImagePull|Failed to pull image",
        _("The image %(image)s could not be pulled; the next attempt comes in a while."),
        _("Check the image's name. Its events tell more."),
    ),
)
