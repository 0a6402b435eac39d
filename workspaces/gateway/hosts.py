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
        named = UUID(label)
    except ValueError:
        return None
    return named if str(named) == label else None  # of all ways to write an id one is its name


def origin_of(workspace_id: UUID, host: str) -> str:
    """The origin of a workspace, on the port by which the portal itself was reached (a tunnel may have another)."""
    _name, port = split_domain_port(host)
    return f"{urlsplit(settings.BASE_URL).scheme}://{workspace_id}.{settings.WORKSPACE_DOMAIN}" + (
        f":{port}" if port else ""
    )


def is_own_page(method: str, headers: dict[str, str]) -> bool:
    """Whether a page of this very host asks, or a person who follows a link.

    Other workspaces are the same *site* to a browser: it sends the cookie along when their pages ask.
    """
    origin = headers.get("origin")
    if origin is not None:
        return origin == f"{urlsplit(settings.BASE_URL).scheme}://{headers['host'].lower()}"
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    # Into a tab of its own: in another's frame, a person would not know what they click.
    is_link = headers.get("sec-fetch-mode") == "navigate"
    return is_link and method in ("GET", "HEAD") and headers.get("sec-fetch-dest", "document") == "document"
