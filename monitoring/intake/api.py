"""REST API for agents. A person's token opens nothing here, and an agent's token nothing elsewhere."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext_noop
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.errors import NotSignedIn, Refusal
from accounts.rest import rates
from accounts.rest.schema import answers
from monitoring import measures
from monitoring.intake import checks, receive, tokens
from monitoring.models import AgentToken


class AgentAuthentication(BaseAuthentication):
    """Authentication by `Authorization: Bearer bra_…`. It has no user."""

    def authenticate(self, request: Request) -> tuple[None, AgentToken]:
        kind, _space, secret = request.headers.get("Authorization", "").partition(" ")
        try:
            return None, tokens.authenticate(secret.strip() if kind.lower() == "bearer" else "")
        except NotSignedIn:
            rates.count_stranger()
            raise

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class AgentScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = AgentAuthentication
    name = "agent"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A token of nodes' agents: `bra_…`"}


class ByAgent(BasePermission):
    def has_permission(self, request: Request, view: APIView) -> bool:
        return isinstance(request.auth, AgentToken)


class AgentView(APIView):
    authentication_classes = (AgentAuthentication,)
    permission_classes = (ByAgent,)

    @staticmethod
    def cluster_id(request: Request) -> UUID:
        assert isinstance(request.auth, AgentToken)
        return request.auth.cluster_id

    @staticmethod
    def body(request: Request) -> bytes:
        length = request.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > checks.MOST_BYTES:
            raise checks.too_large()  # refuse before the body is read
        return request._request.body

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, Refusal) and exc.status in (400, 401, 413):
            measures.REPORTS.count("refused")
        return super().handle_exception(exc)


class SamplesView(AgentView):
    @extend_schema(
        summary=gettext_noop("Report GPU samples of a node (agents)"),
        description="The body is `Batch` of `monitoring/agent/schema.py`.",
        request=OpenApiTypes.OBJECT,
        responses=answers({204: None}, 413),
    )
    def post(self, request: Request) -> Response:
        receive.take(self.cluster_id(request), checks.batch(self.body(request)), timezone.now())
        return Response(status=204)


class HealthView(AgentView):
    @extend_schema(
        summary=gettext_noop("Report problems of a node, without samples (agents)"),
        description="The body is `Head` of `monitoring/agent/schema.py` with its `troubles`.",
        request=OpenApiTypes.OBJECT,
        responses=answers({204: None}, 413),
    )
    def post(self, request: Request) -> Response:
        receive.take_health(self.cluster_id(request), checks.health(self.body(request)), timezone.now())
        return Response(status=204)
