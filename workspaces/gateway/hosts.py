"""Host names of workspaces and of their apps: one each, so that each shares its origin with nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit
from uuid import UUID

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from clusters.models import Cluster
from workspaces.models import Workspace
from workspaces.state import jupyter

RESERVED = "/_berth/"
ENTER = f"{RESERVED}enter"
UUID_LENGTH = 36


def is_on() -> bool:
    return bool(settings.WORKSPACE_DOMAIN)


@dataclass(frozen=True)
class Site:
    """What has a host name of its own: a workspace's Jupyter, or its app at a port."""

    workspace_id: UUID
    port: int | None = None

    @property
    def label(self) -> str:
        """First part of the host name."""
        return str(self.workspace_id) if self.port is None else f"{self.workspace_id}-{self.port}"

    @property
    def page(self) -> str:
        """Path of the portal's page that hands a browser over to this site."""
        of_app = "" if self.port is None else f"apps/{self.port}/"
        return f"/workspaces/{self.workspace_id}/{of_app}open/"


def site_at(host: str) -> Site | None:
    """Return the site that a Host header names, on any port; None if it names none."""
    name, _port = split_domain_port(host)
    label, _dot, domain = name.partition(".")
    if not is_on() or domain != settings.WORKSPACE_DOMAIN:
        return None
    spelt, dash, port = label[:UUID_LENGTH], label[UUID_LENGTH : UUID_LENGTH + 1], label[UUID_LENGTH + 1 :]
    try:
        named = Site(UUID(spelt), int(port) if dash else None)
    except ValueError:
        return None
    return named if named.label == label else None  # only the canonical spelling counts


def jupyter_of(workspace: Workspace) -> str:
    """Return the address of its Jupyter, if people can open it: through the portal, or at that address. Else empty."""
    reachable = is_on() or workspace.pool.cluster.exposure == Cluster.Exposure.LOAD_BALANCER
    return jupyter.address(workspace) if reachable else ""


def origin_of(site: Site, host: str) -> str:
    """The origin of a site, on the port by which the portal itself was reached (a tunnel may have another)."""
    return _origin(f"{site.label}.{settings.WORKSPACE_DOMAIN}", host)


def way_in(site: Site, host: str, *, ticket: str, then: str) -> str:
    """Address to which the portal, reached at this host, sends a browser with its ticket."""
    name, _port = split_domain_port(host)
    asked = urlencode({"ticket": ticket, "next": then, "from": name})
    return f"{origin_of(site, host)}{ENTER}?{asked}"


def portal_from(host: str, name: str) -> str:
    """The portal's origin: the host name that this browser used, on the port by which a workspace was reached.

    A trial has two names, 127.0.0.1 and localhost, and the browser is signed in under only one of them.
    """
    # An allowed host such as .example.org checks only the end, so `name` must be a plain host name first.
    known = (
        bool(name) and split_domain_port(name) == (name, "") and validate_host(name, settings.ALLOWED_HOSTS)
    )
    return _origin(name if known else str(urlsplit(settings.BASE_URL).hostname), host)


def _origin(name: str, reached_at: str) -> str:
    _name, port = split_domain_port(reached_at)
    return f"{urlsplit(settings.BASE_URL).scheme}://{name}" + (f":{port}" if port else "")


def is_own_page(method: str, headers: dict[str, str]) -> bool:
    """Return True if a page of this host asks, or a person follows a link.

    To a browser, other workspaces are the same *site*: it sends the cookie with requests from their pages.
    """
    origin = headers.get("origin")
    if origin is not None:
        return origin == f"{urlsplit(settings.BASE_URL).scheme}://{headers['host'].lower()}"
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    # The link must open a tab: in a frame of another page, a person would not know what they click.
    is_link = headers.get("sec-fetch-mode") == "navigate"
    return is_link and method in ("GET", "HEAD") and headers.get("sec-fetch-dest", "document") == "document"
