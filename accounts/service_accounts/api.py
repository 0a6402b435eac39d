"""Service accounts over REST, for owners of their tenants."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.credentials.tokens import DEFAULT_DAYS, LONGEST_DAYS
from accounts.models import APIToken, Role, Scope, User
from accounts.rest import shapes
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.views import ListView, checked
from accounts.service_accounts import changing


class ServiceAccountShape(serializers.ModelSerializer[User]):
    tenant = serializers.CharField(source="service_of.slug")
    role = serializers.SerializerMethodField()
    responsible = serializers.CharField(
        source="responsible.username", default=None, help_text="Owner who answers for it."
    )
    works = serializers.BooleanField(
        help_text="False: that owner left the tenant, is deactivated or is no owner; its tokens are refused. "
        "Another owner who adopts it creates new ones."
    )
    created_at = serializers.DateTimeField(source="date_joined")

    class Meta:
        model = User
        fields = ("id", "tenant", "username", "role", "responsible", "works", "created_at")

    def get_role(self, account: User) -> Role:
        return next(Role(row.role) for row in account.memberships.all())


class NewServiceAccount(StrictSerializer):
    tenant = serializers.CharField(max_length=40)
    name = serializers.CharField(max_length=40, help_text="Small letters, digits and dashes.")
    role = serializers.ChoiceField(choices=Role.choices, default=Role.MEMBER)


class NewServiceToken(StrictSerializer):
    name = serializers.CharField(max_length=80)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(
            choices=[choice for choice in Scope.choices if choice[0] != Scope.ADMIN]
        ),
        allow_empty=False,
    )
    days = serializers.IntegerField(default=DEFAULT_DAYS, min_value=1, max_value=LONGEST_DAYS)


class ServiceAccountsView(ListView):
    write_scope = Scope.WORKSPACES
    serializer_class = ServiceAccountShape
    queryset = User.objects.none()
    search_fields = ("username",)
    keyset = ("username", "id")

    def get_queryset(self) -> QuerySet[User]:
        return changing.visible(actor_of(self.request))

    @extend_schema(
        summary=gettext_noop("Service accounts of tenants that you own"),
        responses=answers({200: ServiceAccountShape(many=True)}),
    )
    def get(self, request: Request) -> Response:
        return self.page()

    @extend_schema(
        summary=gettext_noop("Create a service account (owners)"),
        request=NewServiceAccount,
        responses=answers({201: ServiceAccountShape}, 404, 409, 422),
    )
    def post(self, request: Request) -> Response:
        account = changing.create(actor_of(request), **checked(NewServiceAccount, request))
        return Response(ServiceAccountShape(account).data, status=201)


class ServiceAccountView(APIView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("A service account"), responses=answers({200: ServiceAccountShape}, 404)
    )
    def get(self, request: Request, id: UUID) -> Response:
        return Response(ServiceAccountShape(changing.get(actor_of(request), id)).data)

    @extend_schema(
        summary=gettext_noop("Delete a service account: its tokens end at once (owners)"),
        request=None,
        responses=answers({204: None}, 404, 409),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        changing.delete(actor, changing.get(actor, id))
        return Response(status=204)


class AdoptView(APIView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("Answer for a service account, and revoke its tokens (owners)"),
        request=None,
        responses=answers({200: ServiceAccountShape}, 404),
    )
    def post(self, request: Request, id: UUID) -> Response:
        checked(shapes.NoBody, request)
        actor = actor_of(request)
        account = changing.get(actor, id)
        changing.adopt(actor, account)
        return Response(ServiceAccountShape(account).data)


class ServiceTokensView(ListView):
    write_scope = Scope.WORKSPACES
    serializer_class = shapes.TokenShape
    queryset = APIToken.objects.none()
    filterset_fields = ("name", "prefix")
    search_fields = ("name", "prefix")

    def get_queryset(self) -> QuerySet[APIToken]:
        return changing.tokens_of(changing.get(actor_of(self.request), self.kwargs["id"]))

    @extend_schema(
        summary=gettext_noop("Tokens of a service account (owners)"),
        responses=answers({200: shapes.TokenShape(many=True)}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        return self.page()

    @extend_schema(
        summary=gettext_noop(
            "Create a token of a service account for which you answer; only this response contains its secret"
        ),
        request=NewServiceToken,
        responses=answers({201: shapes.TokenWithSecretShape}, 404, 409, 422),
    )
    def post(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        account = changing.get(actor, id)
        token, secret = changing.create_token(actor, account, **checked(NewServiceToken, request))
        answer = {**shapes.TokenShape(token).data, "secret": secret}
        return Response(answer, status=201, headers={"Cache-Control": "no-store"})


class ServiceTokenView(APIView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("Revoke a token of a service account (owners)"),
        request=None,
        responses=answers({204: None}, 404),
    )
    def delete(self, request: Request, id: UUID, token_id: UUID) -> Response:
        actor = actor_of(request)
        changing.revoke_token(actor, changing.get(actor, id), token_id)
        return Response(status=204)
