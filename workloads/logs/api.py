"""REST API of logs: what the endpoints of workspaces and jobs share, and the search over a tenant."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from accounts.access import Actor, role_in, tenant_by_slug
from accounts.errors import NotAllowed
from accounts.models import Role, Tenant
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.views import Query
from workloads.figures import moment

from . import sources, text
from .reading import Cursor, Page, Shown, Wanted, last, of_holder, page

MOST_LINES, DEFAULT_LINES = 500, 200
LONGEST_SEARCH = 200
Json = dict[str, Any]


class WhateverAccepted(DefaultContentNegotiation):
    """Accept any Accept header: a log is also sent as text, refusals as JSON."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


class CursorField(serializers.CharField):
    def to_internal_value(self, data: Any) -> Any:
        try:
            return Cursor.parse(super().to_internal_value(data))
        except ValueError:
            raise serializers.ValidationError(_("Use “after” as an answer gave it.")) from None


class SearchQuery(Query):
    search = serializers.CharField(
        default="", max_length=LONGEST_SEARCH, allow_blank=True, trim_whitespace=False
    )
    after = CursorField(default=None, max_length=80)
    limit = serializers.IntegerField(default=DEFAULT_LINES, min_value=1, max_value=MOST_LINES)

    def get_fields(self) -> dict[str, Any]:
        """Add `from` and `to`: the first is a word of Python."""
        times = {name: serializers.DateTimeField(default=None) for name in ("from", "to")}
        return {**super().get_fields(), **times}


class LogQuery(SearchQuery):
    index = serializers.IntegerField(default=None, min_value=0, max_value=2**31 - 1)
    attempt = serializers.IntegerField(default=None, min_value=0, max_value=2**31 - 1)
    run = serializers.UUIDField(default=None)
    tail = serializers.IntegerField(default=None, min_value=1, max_value=MOST_LINES)
    download = serializers.BooleanField(default=False)


class TenantLogQuery(SearchQuery):
    tenant = serializers.SlugField(max_length=40)


class LineShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    index = serializers.IntegerField()
    attempt = serializers.IntegerField()
    run = serializers.UUIDField()
    text = serializers.CharField()
    after = serializers.CharField(help_text="Place of the line: ask for what comes after it.")


class LinesShape(serializers.Serializer[Any]):
    results = LineShape(many=True)
    next = serializers.URLField(allow_null=True)


class FoundLineShape(LineShape):
    holder_kind = serializers.ChoiceField(choices=["workspace", "job"])
    holder_id = serializers.UUIDField()


class FoundLinesShape(serializers.Serializer[Any]):
    results = FoundLineShape(many=True)
    next = serializers.URLField(allow_null=True)


SEARCH_PARAMETERS = [
    OpenApiParameter("search", str, description="Only lines with this text, in small letters or capitals."),
    OpenApiParameter("from", OpenApiTypes.DATETIME, description="Only lines of this time or later."),
    OpenApiParameter("to", OpenApiTypes.DATETIME, description="Only earlier lines."),
    OpenApiParameter("after", str, description="Only lines that come after the one with this `after`."),
    OpenApiParameter("limit", int, description="How many lines at most; there may be fewer before `next`."),
]
PARAMETERS = [
    OpenApiParameter("index", int, description="Only this part, or rank."),
    OpenApiParameter("attempt", int, description="Only this attempt."),
    OpenApiParameter("run", OpenApiTypes.UUID, description="Only this run."),
    *SEARCH_PARAMETERS,
    OpenApiParameter("tail", int, description="Only so many of the last lines; there is no `next`."),
    OpenApiParameter("download", bool, description="All of them as a text file."),
]


def answer(request: Request, holder_id: UUID, name: str) -> Response | StreamingHttpResponse:
    """Answer with lines of a workspace or job that the caller may read: as JSON, or as a file."""
    asked = LogQuery.of(request)
    which = of_holder(holder_id, run=asked["run"], index=asked["index"], attempt=asked["attempt"])
    wanted = Wanted(which, asked["search"], asked["from"], asked["to"])
    if asked["download"]:
        return download(text.Text(actor_of(request).user.pk, text.whole(wanted)), f"{name}.log")
    if asked["tail"] is None:
        found = page(wanted, asked["after"], asked["limit"])
    else:
        found = Page(last(wanted, asked["tail"]), None)
    return Response({"results": [line_json(line) for line in found.lines], "next": next_url(request, found)})


def download(parts: text.Text, name: str) -> StreamingHttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(parts, content_type="text/plain; charset=utf-8", headers=headers)


def next_url(request: Request, found: Page) -> str | None:
    """Return the address of what follows: the request's own, after the page's end."""
    if found.following is None:
        return None
    return replace_query_param(request.build_absolute_uri(), "after", str(found.following))


def line_json(line: Shown) -> Json:
    return {
        "at": moment(line.at),
        "index": line.index,
        "attempt": line.attempt,
        "run": str(line.run),
        "text": line.text,
        "after": str(line.cursor),
    }


def readable(actor: Actor, tenant: Tenant) -> Q:
    """Return the condition on chunks whose lines the actor may read in a tenant. Viewers may read none."""
    role = role_in(actor, tenant)
    if role == Role.OWNER:
        return Q(tenant_id=tenant.pk)
    if role != Role.MEMBER:
        raise NotAllowed(
            "viewer_only_looks",
            _("Viewers cannot read the logs of a tenant."),
            _("Ask an owner of the tenant to make you a member."),
        )
    return Q(tenant_id=tenant.pk, holder_id__in=sources.owned_by(actor.user.pk, tenant.pk))


class TenantLogsView(APIView):
    @extend_schema(
        summary=gettext_noop("Search the logs of a tenant, the newest lines first"),
        description="Owners search all of it, members what is their own.",
        parameters=[OpenApiParameter("tenant", str, required=True), *SEARCH_PARAMETERS],
        responses=answers({200: FoundLinesShape}, 404),
    )
    def get(self, request: Request) -> Response:
        asked, actor = TenantLogQuery.of(request), actor_of(request)
        which = readable(actor, tenant_by_slug(actor, asked["tenant"]))
        wanted = Wanted(which, asked["search"], asked["from"], asked["to"], newest_first=True)
        found = page(wanted, asked["after"], asked["limit"])
        results = [
            {**line_json(line), "holder_kind": line.holder_kind, "holder_id": str(line.holder_id)}
            for line in found.lines
        ]
        return Response({"results": results, "next": next_url(request, found)})
