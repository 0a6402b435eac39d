"""Addresses of the URL map."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver


@dataclass(frozen=True)
class Address:
    """`name` is the path as the URL map has it, with `<parts>` to fill in."""

    name: str
    methods: tuple[str, ...]

    def path(self, ids: dict[str, str]) -> str:
        return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda part: ids[part[1]], self.name)


def addresses(resolver: URLResolver | None = None, before: str = "") -> Iterator[Address]:
    for entry in (resolver or get_resolver()).url_patterns:
        if isinstance(entry, URLResolver):
            yield from addresses(entry, before + str(entry.pattern))
        elif isinstance(entry, URLPattern):
            view = getattr(entry.callback, "cls", None)
            made = view(**entry.callback.initkwargs) if view else None  # type: ignore[attr-defined]
            methods = made.allowed_methods if made else ["GET", "POST"]
            yield Address(
                before + str(entry.pattern), tuple(m for m in methods if m not in ("OPTIONS", "HEAD"))
            )


ALL = list(addresses())
