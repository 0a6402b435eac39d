"""Host names of workspaces: one each, so that what a workspace serves shares an origin with nobody."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit
from uuid import UUID

from django.conf import settings
from django.http.request import split_domain_port, validate_host

ENTER = "/_berth/enter"


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
    return _origin(f"{workspace_id}.{settings.WORKSPACE_DOMAIN}", host)


def way_in(workspace_id: UUID, host: str, *, ticket: str, then: str) -> str:
    """Where the portal, reached at this host, sends a browser with its ticket."""
    name, _port = split_domain_port(host)
    asked = urlencode({"ticket": ticket, "next": then, "from": name})
    return f"{origin_of(workspace_id, host)}{ENTER}?{asked}"


def portal_from(host: str, name: str) -> str:
    """The portal's origin on the port by which a workspace was reached, by the name that it had for this browser.

    A trial has two names, 127.0.0.1 and localhost, and only under one of them is this browser signed in.
    """
    # A pattern such as .example.org looks at the end alone: it must be a name to begin with.
    known = (
        bool(name) and split_domain_port(name) == (name, "") and validate_host(name, settings.ALLOWED_HOSTS)
    )
    return _origin(name if known else str(urlsplit(settings.BASE_URL).hostname), host)


def _origin(name: str, reached_at: str) -> str:
    _name, port = split_domain_port(reached_at)
    return f"{urlsplit(settings.BASE_URL).scheme}://{name}" + (f":{port}" if port else "")


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
