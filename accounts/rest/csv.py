"""Answers as CSV, chosen by `?format=csv` or Accept; the view itself writes the lines.

An export is streamed, one at a time per person, and ends after so many rows or so much time. If it ends before all
rows were sent, its last line says so: the answer has begun by then, and can no longer be refused.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from math import ceil
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import OperationalError, connection
from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from psycopg.errors import QueryCanceled
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access import Actor
from accounts.errors import TooMany
from accounts.rest import rates
from accounts.rest.actors import actor_of
from accounts.spreadsheets import line

MOST_ROWS = 100_000
LONGEST_SECONDS = 120.0
# An export renews its turn with each part. If its process dies, the person can begin another one after this time.
TURN_SECONDS = 60
# A turn is a row among the buckets of rates, which are deleted in time.
BEGIN = """
    INSERT INTO accounts_rate AS turn (bucket, empty_at)
    VALUES (%(bucket)s, clock_timestamp() + %(seconds)s * interval '1 second')
    ON CONFLICT (bucket) DO UPDATE SET empty_at = excluded.empty_at WHERE turn.empty_at <= clock_timestamp()
    RETURNING empty_at
"""
RENEW = """
    UPDATE accounts_rate SET empty_at = clock_timestamp() + %(seconds)s * interval '1 second'
    WHERE bucket = %(bucket)s AND empty_at = %(until)s RETURNING empty_at
"""
END = "DELETE FROM accounts_rate WHERE bucket = %(bucket)s AND empty_at = %(until)s RETURNING empty_at"
LEFT = "SELECT extract(epoch FROM empty_at - clock_timestamp()) FROM accounts_rate WHERE bucket = %(bucket)s"


class CSVRenderer(JSONRenderer):
    """A format that clients can choose; it renders nothing itself."""

    media_type = "text/csv"
    format = "csv"


class OffersCSV(APIView):
    renderer_classes = (JSONRenderer, CSVRenderer)

    @property
    def is_csv(self) -> bool:
        return isinstance(self.request.accepted_renderer, CSVRenderer)

    def handle_exception(self, exc: Exception) -> Response:
        """Answer a refusal as JSON, whatever format was chosen."""
        if hasattr(self.request, "accepted_renderer"):
            self.request.accepted_renderer = JSONRenderer()
            self.request.accepted_media_type = JSONRenderer.media_type
        return super().handle_exception(exc)

    def as_csv(self, name: str, parts: AsyncIterable[Sequence[str]]) -> StreamingHttpResponse:
        """Return the answer. `parts` are its lines: first the header alone, then as many as are read together.

        Raise TooMany if the person exports too often, or has another export under way.
        """
        body: AsyncIterator[str] | Sequence[str] = ()
        if self.request.method == "GET":  # and not HEAD, after which nobody would end the turn
            body = _stream(parts, Turn(actor_of(self.request)), _note())
        return StreamingHttpResponse(
            body,
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


class Turn:
    """A person's right to one export at a time, over all processes."""

    until: Any = None

    def __init__(self, actor: Actor) -> None:
        """Begin. Raise TooMany if the person's rate is used up, or another of their exports has the turn."""
        per_minute = settings.API_RATES["export"]
        rates.count(f"export/{actor.user.pk}", per_minute, too_often)
        self.bucket = f"exporting/{actor.user.pk}"
        self.until = self._run(BEGIN)
        if self.until is None:
            raise under_way(max(1, ceil(self._run(LEFT) or 0)))

    def renew(self) -> bool:
        """Keep the turn. Return False if it went to another export, because this one stood still for too long."""
        self.until = self.until and self._run(RENEW)
        return self.until is not None

    def end(self) -> None:
        self._run(END)

    def _run(self, statement: str) -> Any:
        with connection.cursor() as cursor:
            cursor.execute(statement, {"bucket": self.bucket, "seconds": TURN_SECONDS, "until": self.until})
            row = cursor.fetchone()
        return row[0] if row else None


def too_often(per_minute: int, seconds: int) -> TooMany:
    return TooMany(
        rates.TOO_OFTEN,
        ngettext(
            "Too many exports: one export per minute is allowed.",
            "Too many exports: %(count)d exports per minute are allowed.",
            per_minute,
        )
        % {"count": per_minute},
        _("Wait for the time in Retry-After, then export again."),
        retry_after_seconds=seconds,
    )


def under_way(seconds: int) -> TooMany:
    return TooMany(
        "export_under_way",
        _("Another export of yours is still under way: one at a time is allowed."),
        _("Wait until it is complete. If it was interrupted, wait for the time in Retry-After."),
        retry_after_seconds=seconds,
    )


def _note() -> str:
    """Return the line that ends an incomplete export, in the language of the request that is there now."""
    note = _(
        "NOT COMPLETE: an export ends after %(rows)d rows, or if it takes too long. Narrow it, e.g. by time."
    )
    return line([note % {"rows": MOST_ROWS}])


async def _stream(parts: AsyncIterable[Sequence[str]], turn: Turn, note: str) -> AsyncIterator[str]:
    """Yield the text of the parts up to the limits, and the note if that is not all. Then end the turn."""
    ends = time.monotonic() + LONGEST_SECONDS
    room = MOST_ROWS + 1  # with the header
    try:
        async for part in parts:
            if time.monotonic() > ends or not await sync_to_async(turn.renew)():
                yield note
                return
            yield "".join(part[:room])
            room -= len(part)
            if room < 0:
                yield note
                return
    except OperationalError as error:
        if not isinstance(error.__cause__, QueryCanceled):
            raise
        yield note
    finally:
        await sync_to_async(turn.end)()
