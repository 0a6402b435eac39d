"""REST API of connections. Keys come in and never go out."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.views import ListView, checked
from storage import connections
from storage.models import Connection


class Secret(serializers.CharField):
    """Key that is taken as it is and never given back."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=512, write_only=True, trim_whitespace=False, **options)


class ConnectionBody(StrictSerializer):
    tenant = serializers.CharField(max_length=40)
    name = serializers.CharField(max_length=40)
    endpoint = serializers.CharField(max_length=253)
    bucket = serializers.CharField(max_length=63)
    access_key = Secret(help_text="Never given back.")
    secret_key = Secret(help_text="Never given back.")


class ConnectionChangeBody(StrictSerializer):
    """Fields that are left out stay."""

    name = serializers.CharField(required=False, max_length=40)
    endpoint = serializers.CharField(required=False, max_length=253)
    bucket = serializers.CharField(required=False, max_length=63)
    access_key = Secret(required=False)
    secret_key = Secret(required=False)


class ConnectionShape(serializers.ModelSerializer[Connection]):
    tenant = serializers.CharField(source="tenant.slug")

    class Meta:
        model = Connection
        fields = ("id", "tenant", "name", "endpoint", "bucket", "created_at")


class ConnectionsView(ListView):
    write_scope = Scope.VOLUMES
    serializer_class = ConnectionShape
    queryset = Connection.objects.none()
    filterset_fields = ("name", "bucket")
    search_fields = ("name", "endpoint", "bucket")

    def get_queryset(self) -> QuerySet[Connection]:
        return connections.visible(actor_of(self.request))

    @extend_schema(
        summary=gettext_noop("Your connections to buckets"),
        responses=answers({200: ConnectionShape(many=True)}),
    )
    def get(self, request: Request) -> Response:
        return self.page()

    @extend_schema(
        summary=gettext_noop("Name a bucket and its keys"),
        request=ConnectionBody,
        responses=answers({201: ConnectionShape}, 404, 409, 422),
    )
    def post(self, request: Request) -> Response:
        body = checked(ConnectionBody, request)
        made = connections.create(actor_of(request), body.pop("tenant"), body)
        return Response(ConnectionShape(made).data, status=201)


class ConnectionView(APIView):
    write_scope = Scope.VOLUMES

    @extend_schema(summary=gettext_noop("One connection"), responses=answers({200: ConnectionShape}, 404))
    def get(self, request: Request, id: UUID) -> Response:
        return Response(ConnectionShape(connections.get(actor_of(request), id)).data)

    @extend_schema(
        summary=gettext_noop("Change it; workspaces have it from their next start on"),
        request=ConnectionChangeBody,
        responses=answers({200: ConnectionShape}, 404, 409, 422),
    )
    def patch(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        connections.change(actor, connections.get(actor, id), checked(ConnectionChangeBody, request))
        return Response(ConnectionShape(connections.get(actor, id)).data)

    @extend_schema(
        summary=gettext_noop("Forget it; workspaces are without it from their next start on"),
        request=None,
        responses=answers({204: None}, 404),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        connections.delete(actor, connections.get(actor, id))
        return Response(status=204)
