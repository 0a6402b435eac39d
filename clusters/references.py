"""Container references, and lists of the registries and repositories that they may come from. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

# The grammar of github.com/distribution/reference: [host[:port]/]path[:tag][@digest]
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
# Without a dot or a port, the first part is no host.
_HOST = rf"(?:(?:localhost|{_LABEL}(?:\.{_LABEL})+|\[[0-9a-fA-F:]+\])(?::[0-9]+)?|{_LABEL}:[0-9]+)"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}"
_DIGEST = r"[a-zA-Z][a-zA-Z0-9]*(?:[-_+.][a-zA-Z][a-zA-Z0-9]*)*:[0-9a-fA-F]{32,}"
_PREFIX = re.compile(rf"{_HOST}(?:/{_PART})*/?")
_DEFAULT_HOST, _OFFICIAL = "docker.io", "library"
MOST_PREFIXES, LONGEST_PREFIX = 100, 255
REFERENCE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::{_TAG})?(?:@{_DIGEST})?")


def valid_reference(text: str) -> None:
    """Raise ValidationError for a text that no container runtime takes as an image."""
    if not REFERENCE.fullmatch(text):
        raise ValidationError(
            _(
                "This is no container reference. Write it as registry.example/team/image:tag, or with @sha256:…."
            )
        )


def repository(reference: str) -> str:
    """Return the full repository of a valid reference, without tag and digest, as container runtimes complete it:
    `ubuntu:24.04` is docker.io/library/ubuntu.
    """
    name = reference.partition("@")[0]
    before, slash, last = name.rpartition("/")
    name = f"{before}{slash}{last.partition(':')[0]}"
    host, slash, path = name.partition("/")
    if not slash or not re.fullmatch(_HOST, host):
        host, path = _DEFAULT_HOST, name
    host = _registry(host)
    if host == _DEFAULT_HOST and "/" not in path:
        path = f"{_OFFICIAL}/{path}"
    return f"{host}/{path}"


@lru_cache(maxsize=4096)
def complete(reference: str) -> str:
    """Return a reference as nodes list it: with its registry, and its digest or else its tag."""
    name, _at, digest = reference.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return f"{repository(name)}@{digest}" if digest else f"{repository(name)}:{tag or 'latest'}"


def _registry(host: str) -> str:
    """Return the one name of a registry that has several."""
    host = host.lower()
    return _DEFAULT_HOST if host == f"index.{_DEFAULT_HOST}" else host


def is_latest(reference: str) -> bool:
    """Return True if the reference has the tag latest or none, and no digest."""
    tag = reference.rpartition("/")[2].partition(":")[2]
    return "@" not in reference and tag in ("", "latest")


def prefixes_of(text: str) -> list[str]:
    """Return the lines of a list without the empty ones."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def allows(prefixes: Iterable[str], reference: str) -> bool:
    """Return True if the repository of a valid reference is, or lies under, one of the prefixes."""
    asked = f"{repository(reference)}/"
    # `docker.io/ubuntu` is how people write docker.io/library/ubuntu.
    short = asked.replace(f"{_DEFAULT_HOST}/{_OFFICIAL}/", f"{_DEFAULT_HOST}/", 1)
    return any(name.startswith(_complete(prefix)) for prefix in prefixes for name in (asked, short))


def _complete(prefix: str) -> str:
    host, _slash, path = prefix.rstrip("/").partition("/")
    host = _registry(host)
    return f"{host}/{path}/" if path else f"{host}/"


def valid_prefixes(text: str) -> None:
    """Raise ValidationError for a list with a line that is no host, or host and path."""
    lines = prefixes_of(text)
    if len(lines) > MOST_PREFIXES:
        raise ValidationError(_("Use at most %(most)d lines."), params={"most": MOST_PREFIXES})
    for line in lines:
        if len(line) > LONGEST_PREFIX or not _PREFIX.fullmatch(line):
            raise ValidationError(
                _(
                    "“%(line)s” is no registry. Write a host, and a path if only a part of it is allowed, without "
                    "http:// and without a tag: registry.example/team/"
                ),
                params={"line": line[:LONGEST_PREFIX]},
            )
