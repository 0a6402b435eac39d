"""Tokens of nodes' agents over REST, for admins."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access import Actor, not_there
from accounts.errors import Invalid
from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.views import ListView, checked
from clusters.models import Cluster
from monitoring.intake import tokens
from monitoring.models import AgentToken


class AgentTokenShape(serializers.ModelSerializer[AgentToken]):
    cluster = serializers.CharField(source="cluster.slug")

    class Meta:
        model = AgentToken
        fields = ("id", "cluster", "name", "prefix", "created_at", "last_used_at", "revoked_at")


class AgentTokenWithSecretShape(AgentTokenShape):
    secret = serializers.CharField(help_text="Shown now and never again.")

    class Meta(AgentTokenShape.Meta):
        fields = (*AgentTokenShape.Meta.fields, "secret")  # type: ignore[assignment]


class NewAgentToken(StrictSerializer):
    cluster = serializers.CharField(max_length=40, help_text="Its slug.")
    name = serializers.CharField(max_length=tokens.LONGEST_NAME)


class AgentTokensView(ListView):
    write_scope = Scope.ADMIN
    serializer_class = AgentTokenShape
    queryset = AgentToken.objects.none()
    search_fields = ("name", "prefix")

    def get_queryset(self) -> QuerySet[AgentToken]:
        _require_admin(self.request)
        return AgentToken.objects.select_related("cluster")

    @extend_schema(
        summary=gettext_noop("Tokens of nodes' agents (admins)"),
        responses=answers({200: AgentTokenShape(many=True)}),
    )
    def get(self, request: Request) -> Response:
        return self.page()

    @extend_schema(
        summary=gettext_noop(
            "Create a token for the agents of a cluster; only this response contains its secret"
        ),
        request=NewAgentToken,
        responses=answers({201: AgentTokenWithSecretShape}, 422),
    )
    def post(self, request: Request) -> Response:
        actor = _require_admin(request)
        body = checked(NewAgentToken, request)
        cluster = Cluster.objects.filter(slug=body["cluster"]).first()
        if cluster is None:
            text = _("There is no cluster of this name.")
            raise Invalid("unknown_cluster", text, _("Look in the list."), fields={"cluster": [text]})
        token, secret = tokens.issue(actor, cluster, body["name"])
        answer = {**AgentTokenShape(token).data, "secret": secret}
        return Response(answer, status=201, headers={"Cache-Control": "no-store"})


class AgentTokenView(APIView):
    write_scope = Scope.ADMIN

    @extend_schema(
        summary=gettext_noop("Revoke a token of nodes' agents (admins)"),
        request=None,
        responses=answers({204: None}, 404),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        actor = _require_admin(request)
        token = AgentToken.objects.select_related("cluster").filter(pk=id).first()
        if token is None:
            raise not_there()
        tokens.revoke(actor, token)
        return Response(status=204)


def _require_admin(request: Request) -> Actor:
    actor = actor_of(request)
    actor.require_admin()
    return actor
