"""A person's notices over REST: the list, read marks, and the ways in which they want to be notified."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import django_filters as filters
from django.db.models import QuerySet
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.notices import inbox, preferences
from accounts.notices.kinds import Kind, Ways
from accounts.notices.models import Notice
from accounts.rest import shapes
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.views import ListView, checked


class NoticeShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=Kind.choices)
    at = serializers.DateTimeField()
    read_at = serializers.DateTimeField(allow_null=True)
    title = serializers.CharField()
    text = serializers.CharField()
    hint = serializers.CharField(allow_blank=True)
    path = serializers.CharField(help_text="Page about its subject.")
    is_past = serializers.BooleanField(help_text="It no longer holds.")


class NoticeFilter(filters.FilterSet):  # type: ignore[misc]
    kind = filters.ChoiceFilter(choices=Kind.choices)
    unread = filters.BooleanFilter("read_at", lookup_expr="isnull")


class WaysShape(StrictSerializer):
    kind = serializers.ChoiceField(choices=Kind.choices)
    in_berth = serializers.BooleanField()
    by_mail = serializers.BooleanField()


class NoticePreferencesShape(StrictSerializer):
    results = WaysShape(many=True)


class NoticesView(ListView):
    serializer_class = NoticeShape
    queryset = Notice.objects.none()
    filterset_class = NoticeFilter
    keyset = ("-at", "-id")

    def get_queryset(self) -> QuerySet[Notice]:
        actor = actor_of(self.request)
        actor.require_whole_person()
        return inbox.listed(actor.user)

    @extend_schema(
        summary=gettext_noop("Your notices, the newest first"),
        description="A notice about what you may no longer see is left out.",
        responses=answers({200: NoticeShape(many=True)}),
    )
    def get(self, request: Request) -> Response:
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        lines = inbox.with_words(actor_of(request).user, rows or [])
        return self.get_paginated_response([_line(notice, words) for notice, words in lines])


class AllReadView(APIView):
    @extend_schema(
        operation_id="notices_read_all",
        summary=gettext_noop("Mark all your notices as read"),
        request=None,
        responses=answers({204: None}),
    )
    def post(self, request: Request) -> Response:
        checked(shapes.NoBody, request)
        actor = actor_of(request)
        actor.require_whole_person()
        inbox.read_all(actor.user)
        return Response(status=204)


class ReadView(APIView):
    @extend_schema(
        summary=gettext_noop("Mark one of your notices as read"),
        request=None,
        responses=answers({204: None}, 404),
    )
    def post(self, request: Request, id: UUID) -> Response:
        checked(shapes.NoBody, request)
        actor = actor_of(request)
        actor.require_whole_person()
        inbox.open_one(actor.user, id)
        return Response(status=204)


class NoticePreferencesView(APIView):
    @extend_schema(
        summary=gettext_noop("How you are notified, by kind"),
        responses=answers({200: NoticePreferencesShape}),
    )
    def get(self, request: Request) -> Response:
        ways = preferences.all_ways(actor_of(request).user)
        return Response({"results": [{"kind": kind, **chosen._asdict()} for kind, chosen in ways.items()]})

    @extend_schema(
        summary=gettext_noop("Choose how you are notified; kinds that are not named stay"),
        request=NoticePreferencesShape,
        responses=answers({200: NoticePreferencesShape}),
    )
    def patch(self, request: Request) -> Response:
        actor = actor_of(request)
        actor.require_whole_person()
        lines = checked(NoticePreferencesShape, request)["results"]
        chosen = {Kind(line["kind"]): Ways(line["in_berth"], line["by_mail"]) for line in lines}
        preferences.choose(actor, chosen)
        return self.get(request)


def _line(notice: Notice, words: Any) -> dict[str, Any]:
    fields = {"id": notice.pk, "kind": notice.kind, "at": notice.at, "read_at": notice.read_at}
    words_of = {name: getattr(words, name) for name in ("title", "text", "hint", "path", "is_past")}
    return dict(NoticeShape(fields | words_of).data)
