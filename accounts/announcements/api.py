"""Announcements over REST: everybody reads what is shown, admins announce and end."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.announcements import changing, showing
from accounts.announcements.models import Announcement
from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.views import ListView, checked


class AnnouncementShape(serializers.ModelSerializer[Announcement]):
    class Meta:
        model = Announcement
        fields = ["id", "text", "level", "shown_from", "shown_until", "no_launches_from"]


class AnnouncementChange(StrictSerializer):
    text = serializers.CharField(max_length=500, required=False)
    level = serializers.ChoiceField(choices=Announcement.Level.choices, required=False)
    shown_from = serializers.DateTimeField(required=False)
    shown_until = serializers.DateTimeField(required=False, allow_null=True)
    no_launches_from = serializers.DateTimeField(required=False, allow_null=True)


class NewAnnouncement(AnnouncementChange):
    text = serializers.CharField(max_length=500)


class AnnouncementsView(ListView):
    write_scope = Scope.ADMIN
    serializer_class = AnnouncementShape
    queryset = Announcement.objects.none()
    filterset_fields = ("level",)
    search_fields = ("text",)
    keyset = ("-shown_from", "id")

    def get_queryset(self) -> QuerySet[Announcement]:
        return showing.shown().order_by("-shown_from", "id")

    @extend_schema(
        summary=gettext_noop("Announcements that are shown now, and maintenance"),
        responses=answers({200: AnnouncementShape(many=True)}),
    )
    def get(self, request: Request) -> Response:
        return self.page()

    @extend_schema(
        summary=gettext_noop("Announce something, or maintenance (admins)"),
        request=NewAnnouncement,
        responses=answers({201: AnnouncementShape}, 422),
    )
    def post(self, request: Request) -> Response:
        announcement = changing.announce(actor_of(request), **checked(NewAnnouncement, request))
        return Response(AnnouncementShape(announcement).data, status=201)


class AnnouncementView(APIView):
    write_scope = Scope.ADMIN

    @extend_schema(
        summary=gettext_noop("Change an announcement (admins)"),
        request=AnnouncementChange,
        responses=answers({200: AnnouncementShape}, 404, 422),
    )
    def patch(self, request: Request, id: UUID) -> Response:
        announcement = changing.change(actor_of(request), id, **checked(AnnouncementChange, request))
        return Response(AnnouncementShape(announcement).data)

    @extend_schema(
        summary=gettext_noop("End an announcement now, and its maintenance (admins)"),
        request=None,
        responses=answers({204: None}, 404),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        changing.end(actor_of(request), id)
        return Response(status=204)
