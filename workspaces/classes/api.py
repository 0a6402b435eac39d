"""REST API of class launches, for owners of a tenant."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access import Actor, tenant_by_slug
from accounts.errors import Invalid
from accounts.models import Scope, Tenant
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.shapes import NoBody
from accounts.rest.views import ListView, checked
from quotas.bookings import changes as bookings
from workloads.figures import moment
from workloads.logs.api import WhateverAccepted
from workloads.serializers import MountBody, ReasonShape
from workspaces.api.serializers import ExtendBody
from workspaces.api.templates import Kept, TemplateLaunch
from workspaces.launch import templates
from workspaces.models import ClassLaunch, Phase, Template

from . import acting, collecting, launching
from .acting import Refused
from .collecting import LONGEST_FOLDER
from .launching import MOST_PEOPLE, ClassWish
from .reading import AT_SIGN_IN, PENDING, REFUSED, Counts, counts_of, line_json, lines_of

NOW, SIGN_IN = "now", "sign_in"
PHASES = [REFUSED, PENDING, AT_SIGN_IN, *Phase.values]


class ClassBody(StrictSerializer):
    """A class. To add people to one that exists, `tenant`, `name` and `people` are enough."""

    tenant = serializers.CharField(max_length=40)
    name = serializers.CharField(
        required=False,
        max_length=63,
        help_text="Of the class, and of each workspace. Left out: the template's.",
    )
    template = serializers.CharField(
        required=False, max_length=63, help_text="Id or name of a template of the tenant."
    )
    launch = TemplateLaunch(required=False, help_text="Instead of a template.")
    volumes = MountBody(many=True, required=False, help_text="Mounted for all, beside those of the template.")
    people = serializers.ListField(
        child=serializers.CharField(max_length=150),
        allow_empty=False,
        max_length=MOST_PEOPLE,
        help_text="User names.",
    )
    booking = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="They are launched when it begins, and each takes one of its places.",
    )
    when = serializers.ChoiceField(
        choices=[NOW, SIGN_IN],
        required=False,
        help_text="now, unless said; sign_in: each at the person's next sign-in.",
    )


class ClassLineShape(serializers.Serializer[Any]):
    person = serializers.CharField()
    workspace = serializers.UUIDField(allow_null=True)
    phase = serializers.ChoiceField(
        choices=PHASES,
        help_text="Of the workspace. Without one: refused, pending (launched in a moment, or when the booking begins), "
        "at_sign_in.",
    )
    message = serializers.CharField(allow_blank=True)
    problem = ReasonShape(allow_null=True)
    ready_at = serializers.DateTimeField(allow_null=True)
    stops_at = serializers.DateTimeField(allow_null=True)


class CountsShape(serializers.Serializer[Any]):
    people = serializers.IntegerField()
    ready = serializers.IntegerField()
    on_the_way = serializers.IntegerField()
    waiting = serializers.IntegerField()
    to_come = serializers.IntegerField(help_text="Not launched yet.")
    problems = serializers.IntegerField(help_text="Refused or failed.")
    last_ready_at = serializers.DateTimeField(allow_null=True)


class ClassShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    tenant = serializers.CharField()
    name = serializers.CharField()
    when = serializers.ChoiceField(choices=[NOW, SIGN_IN])
    template = serializers.CharField(allow_null=True)
    booking = serializers.UUIDField(allow_null=True)
    launch = serializers.JSONField()
    by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    stopped_at = serializers.DateTimeField(allow_null=True)
    counts = CountsShape()


class ClassWithPeopleShape(ClassShape):
    people = ClassLineShape(many=True)


def class_json(row: ClassLaunch, counts: Counts) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "tenant": row.tenant.slug,
        "name": row.name,
        "when": SIGN_IN if row.at_sign_in else NOW,
        "template": row.template.name if row.template else None,
        "booking": str(row.booking_id) if row.booking_id else None,
        "launch": row.body,
        "by": row.by.get_username() if row.by else None,
        "created_at": moment(row.created_at),
        "stopped_at": moment(row.stopped_at),
        "counts": vars(counts) | {"last_ready_at": moment(counts.last_ready_at)},
    }


def answer(actor: Actor, class_id: UUID, status: int = 200, refused: Refused | None = None) -> Response:
    row = acting.get(actor, class_id)
    people = [line_json(line) for line in lines_of(row, refused)]
    return Response(class_json(row, counts_of([row])[row.pk]) | {"people": people}, status=status)


def wish_of(actor: Actor, body: dict[str, Any]) -> ClassWish:
    """Convert a valid ClassBody to a ClassWish."""
    tenant = tenant_by_slug(actor, body["tenant"])
    launching.require(actor, tenant)
    template = _template(actor, tenant, body["template"]) if "template" in body else None
    if template is not None and "launch" in body:
        text = _("Give a template or a launch, not both.")
        raise Invalid("invalid", text, _("Leave one of them out."), fields={"launch": [text]})
    name = body.get("name") or (template.name if template else "")
    return ClassWish(
        tenant=tenant,
        name=name,
        people=body["people"],
        template=template,
        kept=kept_of(tenant, template, body.get("launch"), body.get("volumes", [])),
        booking=bookings.get(actor, body["booking"]) if body.get("booking") else None,
        at_sign_in=body["when"] == SIGN_IN if "when" in body else None,
    )


def kept_of(
    tenant: Tenant, template: Template | None, launch: dict[str, Any] | None, volumes: list[Any]
) -> Kept | None:
    """Return what is launched, with these volumes; None: nothing is named."""
    if template is not None:
        fields = TemplateLaunch(data=template.body)
        fields.is_valid(raise_exception=True)
        launch = fields.validated_data
    if launch is None:
        return None
    if volumes:
        launch = launch | {"volumes": [*launch.get("volumes", []), *volumes]}
    return Kept.of(tenant.slug, launch)


def _template(actor: Actor, tenant: Tenant, text: str) -> Template:
    rows = templates.visible(actor).filter(tenant=tenant)
    try:
        found = rows.filter(pk=UUID(text)).first()
    except ValueError:
        found = rows.filter(name=text).first()
    if found is None:
        said = _("There is no such template.")
        raise Invalid(
            "no_such_template", said, _("Look in the list of templates."), fields={"template": [said]}
        )
    return found


class ClassFilter(django_filters.FilterSet):  # type: ignore[misc]
    tenant = django_filters.CharFilter(field_name="tenant__slug")
    name = django_filters.CharFilter()
    booking = django_filters.UUIDFilter(field_name="booking")


class ClassesView(ListView):
    write_scope = Scope.WORKSPACES
    is_launch = True
    serializer_class = ClassShape
    queryset = ClassLaunch.objects.none()
    filterset_class = ClassFilter
    search_fields = ("name",)

    def get_queryset(self) -> QuerySet[ClassLaunch]:
        return acting.visible(actor_of(self.request))

    @extend_schema(
        summary=gettext_noop("Class launches of the tenants that you own"),
        responses=answers({200: ClassShape(many=True)}),
    )
    def get(self, request: Request) -> Response:
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        counts = counts_of(rows)
        return self.get_paginated_response([class_json(row, counts[row.pk]) for row in rows])

    @extend_schema(
        summary=gettext_noop("Launch a workspace for each person of a list (owners)"),
        description=(
            "One line per person: the workspace, or why there is none; the others go on. Sent again, it launches "
            "nothing twice: it adds people who are new, and tries refused ones again. What the request has no time for "
            "is `pending`, and launched within seconds; with an Idempotency-Key that is all of them."
        ),
        request=ClassBody,
        responses=answers({202: ClassWithPeopleShape}, 404, 409, 422),
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        later = "Idempotency-Key" in request.headers  # all that happens now is one transaction
        row = launching.put(actor, wish_of(actor, checked(ClassBody, request)), later=later)
        return answer(actor, row.pk, 202)


class ClassView(APIView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("One class launch, with a line per person"),
        responses=answers({200: ClassWithPeopleShape}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        return answer(actor_of(request), id)

    @extend_schema(
        summary=gettext_noop("Delete a class launch; its workspaces stay"),
        request=None,
        responses=answers({204: None}, 404),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        acting.delete(actor, acting.get(actor, id))
        return Response(status=204)


class ClassStopView(APIView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("Stop all workspaces of a class; files stay"),
        description="Nothing more is launched at sign-ins, until the class is launched again.",
        request=NoBody,
        responses=answers({202: ClassWithPeopleShape}, 404),
    )
    def post(self, request: Request, id: UUID) -> Response:
        checked(NoBody, request)
        actor = actor_of(request)
        return answer(actor, id, 202, acting.stop(actor, acting.get(actor, id)))


class ClassExtendView(APIView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("Change the end of all workspaces of a class that run"),
        description="`problem` of a line says why that one was not extended.",
        request=ExtendBody,
        responses=answers({202: ClassWithPeopleShape}, 404, 422),
    )
    def post(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        row = acting.get(actor, id)
        return answer(actor, id, 202, acting.extend(actor, row, **checked(ExtendBody, request)))


class CollectBody(StrictSerializer):
    folder = serializers.CharField(max_length=LONGEST_FOLDER, help_text="In the home, as in `hand-in`.")


class ClassCollectView(APIView):
    write_scope = Scope.WORKSPACES
    content_negotiation_class = WhateverAccepted

    @extend_schema(
        summary=gettext_noop("A folder of each person's home, as one tar archive"),
        description=(
            "Read from workspaces that are ready, a folder per person. At most 2,000 files and 256 MiB of each; "
            "the last file, `collected.txt`, says what was collected and what was left out. Each person sees in their "
            "workspace's activity that it was collected. At most 6 a minute. It takes no Idempotency-Key."
        ),
        request=CollectBody,
        responses=answers({(200, "application/x-tar"): bytes}, 404, 409, 422, 429),  # type: ignore[dict-item]
    )
    def post(self, request: Request, id: UUID) -> HttpResponseBase:
        actor = actor_of(request)
        row = acting.get(actor, id)
        if "Idempotency-Key" in request.headers:
            text = _("An archive cannot be sent again by its Idempotency-Key.")
            raise Invalid("idempotency_key_invalid", text, _("Leave the key out."))
        folder = checked(CollectBody, request)["folder"]
        return collecting.answer(collecting.begin(actor, row, folder))
