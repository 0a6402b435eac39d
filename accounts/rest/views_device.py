"""Endpoints by which a terminal signs in with a code. Nobody is signed in yet, so they are open to all."""

from __future__ import annotations

from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.credentials import device_codes
from accounts.rest import shapes
from accounts.rest.rates import WithinRate
from accounts.rest.schema import answers
from accounts.rest.views import checked


class CodeView(APIView):
    authentication_classes = ()
    permission_classes = (WithinRate,)

    @extend_schema(
        summary=gettext_noop("Begin the sign-in of a terminal: a person confirms its code in their browser"),
        request=shapes.NewDeviceCode,
        responses=answers({201: shapes.DeviceCodeShape}, 422),
        auth=[],
    )
    def post(self, request: Request) -> Response:
        body = checked(shapes.NewDeviceCode, request)
        begun = device_codes.begin(body["name"], body.get("scopes") or device_codes.DEFAULT_SCOPES)
        page = f"{settings.BASE_URL}{reverse('device')}"
        answer = {
            "device_code": begun.device_code,
            "user_code": begun.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?{urlencode({'code': begun.user_code})}",
            "expires_in": int(device_codes.LIFETIME.total_seconds()),
            "interval": device_codes.POLL_SECONDS,
        }
        return Response(answer, status=201)


class TokenView(APIView):
    authentication_classes = ()
    permission_classes = (WithinRate,)

    @extend_schema(
        summary=gettext_noop("The token of a terminal, once a person has confirmed its code"),
        description="Until then 400 with the code `authorization_pending`; `expired_token` ends it.",
        request=shapes.DeviceTokenBody,
        responses=answers({200: shapes.DeviceTokenShape}, 409, 422),
        auth=[],
    )
    def post(self, request: Request) -> Response:
        body = checked(shapes.DeviceTokenBody, request)
        token, secret = device_codes.redeem(body["device_code"])
        answer = {
            "token": secret,
            "username": token.user.get_username(),
            "scopes": token.scopes,
            "expires_at": token.expires_at,
        }
        return Response(shapes.DeviceTokenShape(answer).data)
