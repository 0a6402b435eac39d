"""Reasons why a node cannot get an image: messages of containerd, CRI-O and Docker, through the kubelet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from clusters.causes.cause import Audience, Cause

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


def _http(*statuses: int) -> str:
    """Return a pattern for statuses of HTTP that does not match in an image's tag."""
    return rf"(?<![:./-])\b(?:{'|'.join(map(str, statuses))})\b"


# The image that a message is about, if it names one.
IMAGE = r'(?:image(?: name| tag)?|reference)\W{1,3}(?P<image>[^\s"\\,]+)'


def _image(
    code: str, pattern: str, sentence: StrOrPromise, hint: StrOrPromise, audience: Audience = "you"
) -> Cause:
    return Cause(code, pattern, sentence, hint, audience, details=IMAGE)


UNUSABLE = _image(
    "image_unusable",
    r"no match for platform|no matching manifest|exec format error"
    r"|failed to (?:extract|register) layer|failed to unpack|failed to prepare extraction"
    r"|unexpected commit digest|failed size validation|archive/tar|content digest \S+ not found"
    r"|could not fetch content descriptor|manifest\.v1\+prettyjws|[Ss]chema 1 (?:image|manifest)s?\b"
    r"|unsupported (?:media ?type|manifest|schema)|unexpected media ?type|(?:digest|checksum"
    r"|size)\b[^\n]{0,40}mismatch"
    r"|invalid tar header|gzip: invalid|zstd: |corrupt\w*|not (?:an )?(?:valid )?image manifest",
    _("The image cannot be used here: it was built for another kind of processor, or arrived damaged."),
    _(
        "Choose another image. If it was damaged, Berth retries automatically; tell an admin if this continues."
    ),
)

CAUSES = (
    _image(
        "image_rate_limited",
        rf"toomanyrequests|too many requests|pull rate limit|{_http(429)}",
        _("The registry of %(image)s has reached its pull limit."),
        _("Berth retries automatically. An admin can add credentials or a mirror of the registry."),
        "admin",
    ),
    # Before image_not_found: an image that lacks a part is "not found", too.
    UNUSABLE,
    _image(
        "image_denied",
        rf"pull access denied|unauthorized|authentication required|denied|{_http(401, 403)}|basic auth"
        r"|authorization failed|\bforbidden\b|insufficient_scope|no credentials|invalid username|not authori[sz]ed",
        _("Cannot pull %(image)s: the image is private or does not exist in the registry."),
        _("Check the image's name. If it is private, ask an admin to add the registry's credentials."),
    ),
    _image(
        "image_not_found",
        rf"not found|manifest unknown|name unknown|does not exist|repository .* not|{_http(404)}"
        r"|InvalidImageName|couldn't parse image|invalid reference format|blob unknown|no such image|short[- ]name"
        r"|ErrImageNeverPull|is not present with pull policy of Never",
        _("The image %(image)s does not exist in its registry, or on the node where it has to be."),
        _("Check its name and tag, or choose another image."),
    ),
    _image(
        "image_registry_unreachable",
        r"no such host|server misbehaving|Name or service not known|Temporary failure in name resolution"
        r"|lookup \S+: Try again|i/o timeout|deadline exceeded|context canceled|connection refused|connection reset"
        r"|unexpected EOF|: EOF|TLS handshake timeout|Client\.Timeout|request canceled"
        r"|bad record MAC|stream error|no route to host|network is unreachable|pull QPS exceeded"
        rf"|{_http(500, 502, 503, 504)}|\b400 Bad Request|error from registry"
        r"|x509|certificate signed by unknown|tls: |certificate has expired|HTTP response to HTTPS client"
        r"|time(?:d )?out|failed to do request|dial tcp|proxyconnect|broken pipe|GOAWAY|INTERNAL_ERROR"
        r"|unexpected status code"
        r"|connection (?:closed|timed out|aborted)|unknown host|could not resolve|\bCanceled\b|copying (?:config"
        r"|blob)|no healthy upstream|bad gateway",
        _("The nodes do not reach the registry of %(image)s, or do not trust it."),
        _(
            "Berth retries automatically. Check the image's name. If it is right, an admin has to check "
            "the registry's certificate, and the DNS, proxy or mirror of the nodes."
        ),
        "admin",
    ),
    _image(
        "image_pull_backoff",
        r"Back-off pulling image|ImagePullBackOff|ErrImagePull|Failed to pull image",
        _("The image %(image)s could not be pulled. Berth will try again later."),
        _("Check the image's name. The activity of your workspace may show more."),
    ),
)
