"""The guides of `docs/` as pages, and the part of them that belongs to the page a person is on."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _
from markdown_it import MarkdownIt
from markdown_it.token import Token

from portal.environment import BASE_DIR

NAMES = {
    "user": _("For researchers"),
    "waiting": _("Why you wait"),
    "quotas": _("Quotas and bookings"),
    "pools": _("Pools"),
    "admin": _("For admins"),
    "api": _("The API"),
}
# Guide and heading by the section of a page; pages of other sections lead to the beginning.
PARTS = {
    "workspaces": ("user", "your-first-workspace"),
    "jobs": ("user", "your-first-job"),
    "gpus": ("user", "who-has-the-gpus"),
    "notices": ("user", "being-told"),
    "volumes": ("user", "where-your-files-live"),
    "post-mortems": ("user", "when-it-waits-when-it-fails"),
    "usage": ("quotas", "usage-and-the-ledger"),
    "bookings": ("user", "bookings"),
    "tenants": ("user", "your-tenants"),
    "alerts": ("admin", "alerts"),
    "profile": ("user", "your-profile"),
    "help": ("user", "when-it-waits-when-it-fails"),
    "api": ("api", ""),
}


class Guide(NamedTuple):
    title: str
    html: SafeString
    headings: list[tuple[str, str]]  # of the second level: their ids and words


def address_of(section: str) -> str:
    """Address of the part of the guides about a section of the pages."""
    name, part = PARTS.get(section, ("user", ""))
    return reverse("guide", args=[name]) + (f"#{part}" if part else "")


@cache
def guide(name: str) -> Guide:
    """Read a guide. HTML in it is not let through, and links to files that are no guides become words."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse((BASE_DIR / "docs" / f"{name}.md").read_text())
    title, headings = "", []
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            words = tokens[at + 1].content
            token.attrSet("id", slugify(words))
            title = title or words
            if token.tag == "h2":
                headings.append((slugify(words), words))
        for child in token.children or ():
            _lead_on(child)
    html = markdown.renderer.render(tokens, markdown.options, {})
    html = html.replace("<pre>", '<pre tabindex="0">')  # long lines are scrolled by keyboard, too
    return Guide(title, mark_safe(html), headings)  # noqa: S308


def _lead_on(token: Token) -> None:
    """Let a link between guides lead to their pages. Pictures, and files that are not served, have no link."""
    if token.type != "link_open":
        return
    path, _hash, part = str(token.attrs["href"]).partition("#")
    known = path.removesuffix(".md")
    if "://" in path or not path:
        return
    if known in NAMES:
        token.attrs["href"] = reverse("guide", args=[known]) + (f"#{part}" if part else "")
    else:
        del token.attrs["href"]
