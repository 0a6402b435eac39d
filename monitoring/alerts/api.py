"""REST API of alerts and their routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access import Actor
from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.shapes import NoBody
from accounts.rest.views import ListView, Query, checked
from monitoring.alerts import access, actions, representation, routes
from monitoring.models import Alert, AlertDelivery, AlertMember, AlertRoute, Severity

SEVERITIES = [one.word for one in Severity]


class AlertShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    code = serializers.CharField(help_text="For programs: never changes.")
    message = serializers.CharField()
    hint = serializers.CharField(allow_blank=True)
    severity = serializers.ChoiceField(choices=SEVERITIES)
    state = serializers.ChoiceField(choices=Alert.State.values)
    cluster = serializers.CharField(allow_null=True)
    pools = serializers.ListField(child=serializers.CharField())
    tenant = serializers.CharField(allow_null=True)
    count = serializers.IntegerField(help_text="Members, those that are over included.")
    still_firing = serializers.IntegerField()
    names = serializers.ListField(
        child=serializers.CharField(), help_text="Nodes, or what else it is about: the first 20."
    )
    since = serializers.DateTimeField()
    last_at = serializers.DateTimeField(help_text="When its newest member came.")
    acknowledged_by = serializers.CharField(allow_null=True)
    acknowledged_at = serializers.DateTimeField(allow_null=True)
    silenced_until = serializers.DateTimeField(allow_null=True)
    escalated_at = serializers.DateTimeField(allow_null=True)
    resolved_by = serializers.CharField(allow_null=True, help_text="Null: it was over by itself.")
    resolved_at = serializers.DateTimeField(allow_null=True)


class AlertMemberShape(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    severity = serializers.ChoiceField(choices=SEVERITIES)
    node = serializers.CharField(allow_null=True)
    name = serializers.CharField(allow_null=True, help_text="A GPU, a volume, a part of Berth.")
    since = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class DeliveryShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    alert = serializers.UUIDField(allow_null=True)
    route = serializers.UUIDField()
    occasion = serializers.ChoiceField(choices=AlertDelivery.Occasion.values)
    to = serializers.CharField(help_text="Person, mail address, or host of the address.")
    message_id = serializers.UUIDField(
        allow_null=True, help_text="Same for what went in one message; sent along as `webhook-id`."
    )
    state = serializers.ChoiceField(choices=AlertDelivery.State.values)
    attempts = serializers.IntegerField()
    status_code = serializers.IntegerField(allow_null=True)
    error = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    due_at = serializers.DateTimeField(allow_null=True)
    sent_at = serializers.DateTimeField(allow_null=True)


class RouteShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    way = serializers.ChoiceField(choices=AlertRoute.Way.values)
    host = serializers.CharField(allow_blank=True, help_text="All that is ever shown of the address.")
    has_secret = serializers.BooleanField()
    least_severity = serializers.ChoiceField(choices=SEVERITIES)
    cluster = serializers.CharField(allow_null=True)
    pool = serializers.CharField(allow_null=True)
    tenant = serializers.CharField(allow_null=True)
    escalates_after_minutes = serializers.IntegerField(allow_null=True)
    every_minutes = serializers.IntegerField(allow_null=True, help_text="Of a heartbeat.")
    enabled = serializers.BooleanField()
    last_beat_at = serializers.DateTimeField(allow_null=True)
    beat_error = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class ChangedRoute(StrictSerializer):
    name = serializers.CharField(max_length=80)
    address = serializers.CharField(
        max_length=routes.LONGEST_ADDRESS, trim_whitespace=False, help_text="Never given back."
    )
    secret = serializers.CharField(
        max_length=200,
        allow_blank=True,
        trim_whitespace=False,
        help_text="Signs webhooks, Feishu and DingTalk. Never given back.",
    )
    least_severity = serializers.ChoiceField(choices=SEVERITIES)
    cluster = serializers.CharField(max_length=63, allow_null=True)
    pool = serializers.CharField(max_length=63, allow_null=True)
    escalates_after_minutes = serializers.IntegerField(
        min_value=1, max_value=1440, allow_null=True, help_text="Only what nobody acknowledged so long."
    )
    every_minutes = serializers.IntegerField(min_value=1, max_value=1440)
    enabled = serializers.BooleanField()
    may_reach_inside = serializers.BooleanField(help_text="Admins only.")

    def get_fields(self) -> Any:
        fields = super().get_fields()
        for name in fields:
            fields[name].required = name in self.needed
        return fields

    needed: tuple[str, ...] = ()


class NewRoute(ChangedRoute):
    way = serializers.ChoiceField(choices=AlertRoute.Way.values)
    tenant = serializers.CharField(max_length=63, allow_null=True)
    needed = ("name", "way")


class SilenceBody(StrictSerializer):
    minutes = serializers.IntegerField(min_value=1, max_value=actions.LONGEST_SILENCE_MINUTES)


class AlertQuery(Query):
    state = serializers.ChoiceField(choices=Alert.State.values, required=False)
    severity = serializers.ChoiceField(choices=SEVERITIES, required=False)
    cluster = serializers.CharField(max_length=63, required=False)
    code = serializers.CharField(max_length=64, required=False)


class AlertsView(ListView):
    serializer_class = AlertShape
    queryset = Alert.objects.none()
    filter_backends = ()
    keyset = ("-since", "-id")

    @extend_schema(
        summary=gettext_noop("Alerts: what is wrong, grouped"),
        description="Admins see all, owners those of their tenants.",
        parameters=[AlertQuery],
        responses=answers({200: AlertShape(many=True)}),
    )
    def get(self, request: Request) -> Response:
        asked = AlertQuery.of(request)
        rows = access.visible(actor_of(request))
        if "severity" in asked:
            rows = rows.filter(severity=Severity[asked.pop("severity").upper()])
        if "cluster" in asked:
            rows = rows.filter(cluster__slug=asked.pop("cluster"))
        page = self.paginate_queryset(rows.filter(**asked))
        return self.get_paginated_response(representation.alerts_json(page or []))


class OneAlertView(APIView):
    write_scope = Scope.WORKSPACES

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.actor = actor_of(request)
        self.alert = access.get(self.actor, kwargs["id"])

    def answer(self) -> Response:
        return Response(representation.alert_json(access.get(self.actor, self.alert.pk)))


class AlertView(OneAlertView):
    @extend_schema(summary=gettext_noop("An alert"), responses=answers({200: AlertShape}, 404))
    def get(self, request: Request, id: UUID) -> Response:
        return self.answer()


class AlertActionView(OneAlertView):
    use_case: Callable[[Actor, Alert], bool]

    @extend_schema(request=NoBody, responses=answers({200: AlertShape}, 404, 409))
    def post(self, request: Request, id: UUID) -> Response:
        checked(NoBody, request)
        self.use_case(self.actor, self.alert)
        return self.answer()


@extend_schema(summary=gettext_noop("Acknowledge an alert: it is not escalated any more"))
class AcknowledgeView(AlertActionView):
    use_case = staticmethod(actions.acknowledge)


@extend_schema(summary=gettext_noop("Resolve an alert by hand"))
class ResolveView(AlertActionView):
    use_case = staticmethod(actions.resolve)


class SilenceView(OneAlertView):
    @extend_schema(
        summary=gettext_noop("Send nothing about an alert for some time"),
        request=SilenceBody,
        responses=answers({200: AlertShape}, 404, 409),
    )
    def post(self, request: Request, id: UUID) -> Response:
        actions.silence(self.actor, self.alert, **checked(SilenceBody, request))
        return self.answer()


class MembersView(ListView):
    serializer_class = AlertMemberShape
    queryset = AlertMember.objects.none()
    filter_backends = ()
    keyset = ("id", "id")

    @extend_schema(
        summary=gettext_noop("What an alert consists of"),
        responses=answers({200: AlertMemberShape(many=True)}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        alert = access.get(actor_of(request), id)
        page = self.paginate_queryset(AlertMember.objects.filter(alert=alert))
        return self.get_paginated_response([representation.member_json(one) for one in page or []])


class _DeliveriesView(ListView):
    serializer_class = DeliveryShape
    queryset = AlertDelivery.objects.none()
    filter_backends = ()

    def answer(self, rows: QuerySet[AlertDelivery]) -> Response:
        page = self.paginate_queryset(rows.select_related("route", "recipient"))
        return self.get_paginated_response([representation.delivery_json(one) for one in page or []])


class AlertDeliveriesView(_DeliveriesView):
    @extend_schema(
        summary=gettext_noop("Messages about an alert"),
        responses=answers({200: DeliveryShape(many=True)}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        alert = access.get(actor, id)
        return self.answer(access.deliveries(actor).filter(alert=alert))


class RouteDeliveriesView(_DeliveriesView):
    @extend_schema(
        summary=gettext_noop("Messages by an alert route"),
        responses=answers({200: DeliveryShape(many=True)}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        route = access.get_route(actor_of(request), id)
        return self.answer(AlertDelivery.objects.filter(route=route))


class RoutesView(ListView):
    write_scope = Scope.WORKSPACES
    serializer_class = RouteShape
    queryset = AlertRoute.objects.none()
    filter_backends = ()

    @extend_schema(
        summary=gettext_noop("Routes by which alerts are sent"),
        responses=answers({200: RouteShape(many=True)}),
    )
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(access.routes(actor_of(request)))
        return self.get_paginated_response([representation.route_json(one) for one in page or []])

    @extend_schema(
        summary=gettext_noop("Create a route for alerts (admins; owners for their tenant)"),
        request=NewRoute,
        responses=answers({201: RouteShape}, 404, 422),
    )
    def post(self, request: Request) -> Response:
        route = routes.create(actor_of(request), checked(NewRoute, request))
        return Response(representation.route_json(route), status=201)


class OneRouteView(APIView):
    write_scope = Scope.WORKSPACES

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.actor = actor_of(request)
        self.route = access.get_route(self.actor, kwargs["id"])


class RouteView(OneRouteView):
    @extend_schema(
        summary=gettext_noop("Change a route for alerts"),
        request=ChangedRoute,
        responses=answers({200: RouteShape}, 404, 422),
    )
    def patch(self, request: Request, id: UUID) -> Response:
        routes.change(self.actor, self.route, checked(ChangedRoute, request))
        return Response(representation.route_json(access.get_route(self.actor, id)))

    @extend_schema(
        summary=gettext_noop("Delete a route for alerts"),
        request=None,
        responses=answers({204: None}, 404, 409),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        routes.delete(self.actor, self.route)
        return Response(status=204)


class TestRouteView(OneRouteView):
    @extend_schema(
        summary=gettext_noop("Send a test by a route for alerts"),
        request=NoBody,
        responses=answers({202: DeliveryShape}, 404, 409),
    )
    def post(self, request: Request, id: UUID) -> Response:
        checked(NoBody, request)
        delivery = routes.test(self.actor, self.route)
        return Response(representation.delivery_json(delivery), status=202)
