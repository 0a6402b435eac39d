"""The API's OpenAPI schema: built once per process and language, and sent again only to clients that lack it."""

from __future__ import annotations

import hashlib
from functools import cache
from threading import Lock
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import translation
from django.utils.cache import get_conditional_response
from django.utils.encoding import force_bytes
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request

# Building takes seconds of one core: requests that come at once wait for the first.
_building = Lock()


def schema_in(language: str) -> dict[str, Any]:
    """Return the schema in one of Berth's languages."""
    with _building:
        return _built(language)


@cache
def _built(language: str) -> dict[str, Any]:
    with translation.override(language):
        schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
        return schema


@cache
def _rendered(language: str, format_: str) -> tuple[bytes, str]:
    """Return the schema's bytes and their ETag."""
    renderer = next(each for each in SchemaView.renderer_classes if each.format == format_)
    with translation.override(language):
        body = force_bytes(renderer().render(schema_in(language), None, {}))
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


class SchemaView(SpectacularAPIView):
    def _get_schema_response(self, request: Request) -> HttpResponseBase:
        """Return the schema in the language that is active, which `?lang=` chooses; 304 if the client has it."""
        active = translation.get_language()
        language = active if active in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE
        renderer = request.accepted_renderer
        body, etag = _rendered(language, renderer.format)
        answer = HttpResponse(
            body,
            content_type=f"{renderer.media_type}; charset=utf-8",
            headers={
                "ETag": etag,
                "Content-Disposition": f'inline; filename="Berth.{renderer.format}"',
                "Content-Language": language,
            },
        )
        return get_conditional_response(request._request, etag=etag, response=answer) or answer
