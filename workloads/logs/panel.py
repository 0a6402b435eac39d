"""Panel of a log: the last lines, or those that were searched for. It works without scripts.

A page includes `workloads/_log.html` with `log`, a Panel. Of its address it reads `search`, `within`, `part`, `before`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from .api import LONGEST_SEARCH
from .models import LogStream
from .reading import Cursor, Shown, Wanted, of_holder, page

SHOWN_LINES = 500
SHOWN_PARTS = 200
TIMES = {
    "hour": (timedelta(hours=1), gettext_lazy("Last hour")),
    "day": (timedelta(days=1), gettext_lazy("Last day")),
    "week": (timedelta(days=7), gettext_lazy("Last week")),
}
# Colours and movements of a terminal (ECMA-48), and what a progress bar overwrote.
CONTROLS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]")


@dataclass(frozen=True)
class Choice:
    """Part of a log that can be chosen: an attempt of a part of a job, or a run of a workspace."""

    value: str
    label: str


class Panel:
    """Panel of one workspace's or job's log. `socket` and `api`: addresses of the same log."""

    def __init__(self, request: HttpRequest, holder_id: UUID, *, socket: str, api: str) -> None:
        asked = request.GET
        self.api, self.path = api, request.path
        self.search = asked.get("search", "").replace("\0", "")[:LONGEST_SEARCH]
        self.within = asked.get("within", "") if asked.get("within") in TIMES else ""
        self._streams = list(
            LogStream.objects.filter(holder_id=holder_id).order_by("-created_at")[:SHOWN_PARTS]
        )
        by_part = {part_of(stream): stream for stream in reversed(self._streams)}
        self.part = asked.get("part", "") if asked.get("part") in by_part else ""
        self.chosen: LogStream | None = by_part.get(self.part) or next(iter(self._streams), None)
        self._chosen = chosen_by(by_part[self.part]) if self.part else {}
        self._holder_id, self._socket = holder_id, socket
        self._before = Cursor.of(asked.get("before", ""))

    @cached_property
    def _page(self) -> tuple[list[Shown], Cursor | None]:
        """The newest wanted lines before a place, in order, and the place of older ones."""
        since = timezone.now() - TIMES[self.within][0] if self.within else None
        wanted = Wanted(of_holder(self._holder_id, **self._chosen), self.search, since, newest_first=True)
        found = page(wanted, self._before, SHOWN_LINES)
        return found.lines[::-1], found.following

    @property
    def text(self) -> str:
        return "\n".join(self._line(line) for line in self._page[0])

    def _line(self, line: Shown) -> str:
        return (
            f"{line.index}/{line.attempt} │ {readable(line.text)}" if self.has_parts else readable(line.text)
        )

    @property
    def has_parts(self) -> bool:
        """True if lines of several parts of a job stand beside each other."""
        return not self.part and len({(one.index, one.attempt) for one in self._streams}) > 1

    @property
    def is_live(self) -> bool:
        """True if the panel shows the end of the log: a search and older lines stand still."""
        return not (self.search or self.within or self._before)

    @property
    def socket(self) -> str:
        """Address of the websocket that goes on after what is shown; empty if the panel stands still."""
        if not self.is_live:
            return ""
        asked = {name: str(value) for name, value in self._chosen.items()}
        return f"{self._socket}?{urlencode(asked)}" if asked else self._socket

    @property
    def after(self) -> str:
        lines = self._page[0]
        return str(lines[-1].cursor) if lines else ""

    @property
    def older(self) -> str:
        """Query of older lines; empty if there are none."""
        place = self._page[1]
        return self._query(before=str(place)) if place else ""

    @property
    def download(self) -> str:
        asked = {name: str(value) for name, value in self._chosen.items()}
        return f"{self.api}?{urlencode(asked | {'search': self.search, 'download': 'true'})}"

    def _query(self, **more: str) -> str:
        asked = {"search": self.search, "within": self.within, "part": self.part, **more}
        return "?" + urlencode({name: value for name, value in asked.items() if value})

    @property
    def parts(self) -> list[Choice]:
        """Parts to choose from, the newest first; none if there is one only."""
        found = {part_of(stream): label_of(stream) for stream in self._streams}
        return [Choice(value, label) for value, label in found.items()] if len(found) > 1 else []

    @property
    def times(self) -> list[Choice]:
        return [Choice(value, str(label)) for value, (_span, label) in TIMES.items()]

    @property
    def elsewhere(self) -> str:
        """Address of the same log at the site's own store of logs; empty if it has none."""
        return elsewhere(self.chosen) if self.chosen else ""


def part_of(stream: LogStream) -> str:
    return f"{stream.index}.{stream.attempt}" if stream.attempt else str(stream.run)


def chosen_by(stream: LogStream) -> dict[str, Any]:
    return {"index": stream.index, "attempt": stream.attempt} if stream.attempt else {"run": stream.run}


def label_of(stream: LogStream) -> str:
    if stream.attempt:
        return _("Part %(index)d, attempt %(attempt)d") % {"index": stream.index, "attempt": stream.attempt}
    at = timezone.localtime(stream.created_at)
    return _("Run of %(time)s") % {"time": date_format(at, "SHORT_DATETIME_FORMAT")}


def readable(text: str) -> str:
    """Return a line as a terminal would leave it: what was overwritten, and colours, are left out."""
    return CONTROLS.sub("", text.rstrip("\r").rpartition("\r")[2])


def elsewhere(stream: LogStream) -> str:
    """Return BERTH_LOGS_URL with its placeholders filled in for this log."""
    end = stream.ended_at or timezone.now()
    values = {
        "namespace": stream.namespace,
        "pod": stream.pod,
        "run": str(stream.run),
        "from": stream.created_at.isoformat(),
        "to": (end + timedelta(minutes=1)).isoformat(),
        "from_ms": str(int(stream.created_at.timestamp() * 1000)),
        "to_ms": str(int(end.timestamp() * 1000) + 60_000),
    }
    address: str = settings.LOGS_URL
    for name, value in values.items():
        address = address.replace(f"{{{name}}}", quote(value, safe=""))
    return address
