"""Answers as CSV, chosen by `?format=csv` or Accept; the view itself writes the lines."""

from __future__ import annotations

from collections.abc import AsyncIterable

from django.http import StreamingHttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import APIView


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


def as_csv(name: str, lines: AsyncIterable[str]) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        lines,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
