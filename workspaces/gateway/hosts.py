"""Host names of workspaces: one each, so that what a workspace serves shares an origin with nobody."""

from __future__ import annotations

from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.http.request import split_domain_port


def is_on() -> bool:
    return bool(settings.WORKSPACE_DOMAIN)


def workspace_at(host: str) -> UUID | None:
    """The workspace that a Host header names, on whatever port; None where it names none."""
    name, _port = split_domain_port(host)
    label, _dot, domain = name.partition(".")
    if not is_on() or domain != settings.WORKSPACE_DOMAIN:
        return None
    try:
        return UUID(label)
    except ValueError:
        return None


def origin_of(workspace_id: UUID, host: str) -> str:
    """The origin of a workspace, on the port by which the portal itself was reached (a tunnel may have another)."""
    _name, port = split_domain_port(host)
    return f"{urlsplit(settings.BASE_URL).scheme}://{workspace_id}.{settings.WORKSPACE_DOMAIN}" + (
        f":{port}" if port else ""
    )


def is_own_page(headers: dict[str, str]) -> bool:
    """Whether a page of this very host asks, or a person who follows a link.

    Other workspaces are the same *site* to a browser: it sends the cookie along when their pages ask.
    """
    origin = headers.get("origin")
    if origin is not None:
        return urlsplit(origin).netloc == headers.get("host")
    return (
        headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        or headers.get("sec-fetch-mode") == "navigate"
    )
