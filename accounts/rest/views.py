"""Endpoints for the caller's own identity and access: me, SSH keys, tokens, websocket tickets."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import get_language, gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import preferences
from accounts.access import roles_of
from accounts.credentials import sessions, ssh_keys, tickets, tokens
from accounts.models import APIToken, Scope, SSHKey
from accounts.rest import shapes
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer


def checked(shape: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """Return the validated body. Raise ValidationError, which becomes 400 with `fields`."""
    serializer = shape(data=request.data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


class Query(StrictSerializer):
    """Query parameters, checked like a body. Unknown parameters are ignored."""

    @classmethod
    def of(cls, request: Request) -> dict[str, Any]:
        names = cls().fields
        query = cls(data={name: text for name, text in request.query_params.items() if name in names})
        query.is_valid(raise_exception=True)
        return dict(query.validated_data)


class ListView(GenericAPIView[Any]):
    """A list, one page at a time: rows of the view's `get_queryset`, as its `serializer_class` shows them."""

    def page(self) -> Response:
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self.get_serializer(rows, many=True).data)


class MeView(APIView):
    @extend_schema(
        summary=gettext_noop("Your account and your tenants"), responses=answers({200: shapes.MeShape})
    )
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        user = actor.user
        return Response(
            {
                "username": user.username,
                "email": user.email,
                "is_admin": user.is_staff,
                "language": user.language or get_language(),
                "time_zone": user.time_zone or None,
                "theme": user.theme,
                "service_account": user.service_of_id is not None,
                "tenants": [
                    {"slug": tenant.slug, "name": tenant.name, "role": role}
                    for tenant, role in roles_of(actor)
                ],
            }
        )

    @extend_schema(
        summary=gettext_noop("Choose your language, time zone and theme"),
        request=shapes.MyPreferences,
        responses=answers({200: shapes.MeShape}),
    )
    def patch(self, request: Request) -> Response:
        actor = actor_of(request)
        actor.require_whole_person()
        preferences.choose(actor.user, **checked(shapes.MyPreferences, request))
        return self.get(request)


class SessionsView(APIView):
    @extend_schema(
        summary=gettext_noop("Sign out of every browser; tokens and SSH keys still work"),
        request=None,
        responses=answers({204: None}),
    )
    def delete(self, request: Request) -> Response:
        sessions.sign_out_everywhere(actor_of(request))
        return Response(status=204)


class SSHKeysView(ListView):
    write_scope = Scope.WORKSPACES
    serializer_class = shapes.SSHKeyShape
    queryset = SSHKey.objects.none()
    filterset_fields = ("name", "fingerprint")
    search_fields = ("name", "fingerprint")

    def get_queryset(self) -> QuerySet[SSHKey]:
        return SSHKey.objects.filter(user=actor_of(self.request).user)

    @extend_schema(
        summary=gettext_noop("Your SSH keys"), responses=answers({200: shapes.SSHKeyShape(many=True)})
    )
    def get(self, request: Request) -> Response:
        return self.page()

    @extend_schema(
        summary=gettext_noop("Add an SSH key"),
        request=shapes.NewSSHKey,
        responses=answers({201: shapes.SSHKeyShape}, 409, 422),
    )
    def post(self, request: Request) -> Response:
        key = ssh_keys.add(actor_of(request), **checked(shapes.NewSSHKey, request))
        return Response(shapes.SSHKeyShape(key).data, status=201)


class SSHKeyView(APIView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("Remove an SSH key"), request=None, responses=answers({204: None}, 404)
    )
    def delete(self, request: Request, id: UUID) -> Response:
        ssh_keys.remove(actor_of(request), id)
        return Response(status=204)


class TokensView(ListView):
    serializer_class = shapes.TokenShape
    queryset = APIToken.objects.none()
    filterset_fields = ("name", "prefix")
    search_fields = ("name", "prefix")

    def get_queryset(self) -> QuerySet[APIToken]:
        return tokens.usable(actor_of(self.request)).select_related("tenant")

    @extend_schema(
        summary=gettext_noop("Your API tokens"), responses=answers({200: shapes.TokenShape(many=True)})
    )
    def get(self, request: Request) -> Response:
        return self.page()

    @extend_schema(
        summary=gettext_noop("Create an API token; only this response contains its secret"),
        request=shapes.NewToken,
        responses=answers({201: shapes.TokenWithSecretShape}, 409, 422),
    )
    def post(self, request: Request) -> Response:
        body = checked(shapes.NewToken, request)
        token, secret = tokens.create(
            actor_of(request), body["name"], body["scopes"], body.get("tenant"), body["days"]
        )
        answer = {**shapes.TokenShape(token).data, "secret": secret}
        return Response(answer, status=201, headers={"Cache-Control": "no-store"})


class TokenView(APIView):
    @extend_schema(
        summary=gettext_noop("Revoke an API token"), request=None, responses=answers({204: None}, 404)
    )
    def delete(self, request: Request, id: UUID) -> Response:
        tokens.revoke(actor_of(request), id)
        return Response(status=204)


class TicketsView(APIView):
    write_scope = Scope.READ  # a ticket only opens what can be read anyway

    @extend_schema(
        summary=gettext_noop("A ticket that opens one websocket within 60 s"),
        request=None,
        responses=answers({201: shapes.TicketShape}),
    )
    def post(self, request: Request) -> Response:
        checked(shapes.NoBody, request)
        ticket, expires_at = tickets.issue(actor_of(request))
        answer = shapes.TicketShape({"ticket": ticket, "expires_at": expires_at}).data
        return Response(answer, status=201, headers={"Cache-Control": "no-store"})
