"""The whole configuration over REST, as YAML."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext_noop
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.views import Query
from portal.configuration import applying
from portal.configuration.reading import read

YAML = "application/yaml"


class RawParser(BaseParser):
    """Takes the body as it is: lines of faults are those of the sender's file."""

    media_type = YAML

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        return stream.read()


# JSON is YAML, too.
PARSERS = [
    type("RawParser", (RawParser,), {"media_type": name})
    for name in (YAML, "application/x-yaml", "text/yaml", "text/x-yaml", "application/json")
]


class ObjectShape(serializers.Serializer[Any]):
    kind = serializers.CharField()
    key = serializers.CharField(help_text="Its slug or name; several with / between.")


class CreatedShape(ObjectShape):
    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "fields": serializers.DictField()}


class ChangedShape(ObjectShape):
    def get_fields(self) -> dict[str, Any]:
        of_one = serializers.DictField(help_text="old and new")
        return {**super().get_fields(), "fields": serializers.DictField(child=of_one)}


class DifferenceShape(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField()
    created = CreatedShape(many=True)
    changed = ChangedShape(many=True)
    deleted = ObjectShape(many=True)


class Asked(Query):
    dry_run = serializers.BooleanField(default=False, help_text="Answer the difference, and change nothing.")


class ConfigurationView(APIView):
    write_scope = Scope.ADMIN
    parser_classes = PARSERS

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Answer in the one form that there is, whatever a client accepts: YAML, and JSON for the rest."""
        return JSONRenderer(), JSONRenderer.media_type

    @extend_schema(
        summary=gettext_noop("What admins configure, as YAML, without secrets (admins)"),
        responses=answers({(200, YAML): OpenApiTypes.STR}, 403),  # type: ignore[dict-item]
    )
    def get(self, request: Request) -> HttpResponse:
        text = applying.export(actor_of(request))
        return HttpResponse(
            text, content_type=f"{YAML}; charset=utf-8", headers={"Cache-Control": "no-store"}
        )

    @extend_schema(
        summary=gettext_noop("Bring the configuration to what a file says, all of it or nothing (admins)"),
        parameters=[Asked],
        request={YAML: OpenApiTypes.STR},
        responses=answers({200: DifferenceShape}, 413, 415, 422),
    )
    def put(self, request: Request) -> Response:
        dry_run = Asked.of(request)["dry_run"]
        data: Any = request.data
        body = data if isinstance(data, bytes) else b""  # a request without a body has no parser
        difference = applying.apply(actor_of(request), read(body), dry_run=dry_run)
        return Response({"dry_run": dry_run, **asdict(difference)})
