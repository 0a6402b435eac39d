"""Templates of a launch: owners keep them for their tenant, members read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder
from rest_framework.views import APIView

from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.views import ListView, checked
from clusters.site import environment
from workloads.repositories import without_credentials
from workloads.serializers import Environment, ImageBody, MountBody
from workspaces.launch import templates
from workspaces.launch.launch import LaunchSpec
from workspaces.models import Template

from .app_shapes import AppBody
from .serializers import SettingsBody, spec_of

MOST_SECRETS = 50
IMAGE = ("image", "image_reference")  # one of them


class TemplateLaunch(ImageBody, SettingsBody):
    """Fields of a launch that a template may have. Secrets are names for the reader to fill in."""

    repository = serializers.CharField(required=False, allow_blank=True, max_length=1024)
    volumes = MountBody(many=True, required=False)
    apps = AppBody(many=True, required=False)
    env = Environment(required=False, help_text="All members of the tenant see it.")
    secret_names = serializers.ListField(
        child=serializers.RegexField(environment.NAME, max_length=128),
        required=False,
        max_length=MOST_SECRETS,
        help_text="Secret environment: names alone.",
    )


class TemplateBody(StrictSerializer):
    tenant = serializers.CharField(max_length=40)
    name = serializers.CharField(max_length=63)
    launch = TemplateLaunch()


class TemplateChange(StrictSerializer):
    """Changes to a template; fields that are left out stay. `launch` is replaced as a whole."""

    name = serializers.CharField(required=False, max_length=63)
    launch = TemplateLaunch(required=False)


class TemplateShape(serializers.ModelSerializer[Template]):
    tenant = serializers.CharField(source="tenant.slug")
    launch = serializers.JSONField(source="body")
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)

    class Meta:
        model = Template
        fields = ("id", "tenant", "name", "launch", "created_by", "created_at", "changed_at")


@dataclass(frozen=True)
class Kept:
    """A launch as a template keeps it, and what it asks for."""

    body: dict[str, Any]
    spec: LaunchSpec

    @classmethod
    def of(cls, tenant: str, launch: Mapping[str, Any]) -> Kept:
        """Take the fields of a valid TemplateLaunch. Credentials of the repository are left out."""
        body = {name: value for name, value in launch.items() if value or name not in IMAGE}
        if body.get("repository"):
            body["repository"] = without_credentials(body["repository"])
        if "secret_names" in body:
            body["secret_names"] = sorted(set(body["secret_names"]))
        rest: dict[str, Any] = {
            **dict.fromkeys(IMAGE, ""),
            "env": {},
            "repository": "",
            "volumes": [],
            "priority": 0,
            "connections": [],
            "metrics": None,
        }
        secret_env = dict.fromkeys(body.get("secret_names", ()), "")
        spec = spec_of(rest | body | {"tenant": tenant, "name": "template", "secret_env": secret_env})
        return cls(json.loads(json.dumps(body, cls=JSONEncoder)), spec)


class TemplateFilter(django_filters.FilterSet):  # type: ignore[misc]
    tenant = django_filters.CharFilter(field_name="tenant__slug")
    name = django_filters.CharFilter()


class TemplatesView(ListView):
    write_scope = Scope.WORKSPACES
    serializer_class = TemplateShape
    queryset = Template.objects.none()
    filterset_class = TemplateFilter
    search_fields = ("name",)

    def get_queryset(self) -> QuerySet[Template]:
        return templates.visible(actor_of(self.request))

    @extend_schema(
        summary=gettext_noop("Templates of your tenants"), responses=answers({200: TemplateShape(many=True)})
    )
    def get(self, request: Request) -> Response:
        return self.page()

    @extend_schema(
        summary=gettext_noop("Save a launch as a template"),
        request=TemplateBody,
        responses=answers({201: TemplateShape}, 404, 409, 422),
    )
    def post(self, request: Request) -> Response:
        body = checked(TemplateBody, request)
        kept = Kept.of(body["tenant"], body["launch"])
        made = templates.create(actor_of(request), body["name"], kept.spec, kept.body)
        return Response(TemplateShape(made).data, status=201)


class TemplateView(APIView):
    write_scope = Scope.WORKSPACES

    @extend_schema(summary=gettext_noop("One template"), responses=answers({200: TemplateShape}, 404))
    def get(self, request: Request, id: UUID) -> Response:
        return Response(TemplateShape(templates.get(actor_of(request), id)).data)

    @extend_schema(
        summary=gettext_noop("Change a template"),
        request=TemplateChange,
        responses=answers({200: TemplateShape}, 404, 409, 422),
    )
    def patch(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        template = templates.get(actor, id)
        body = checked(TemplateChange, request)
        kept = Kept.of(template.tenant.slug, body["launch"]) if "launch" in body else kept_of(template)
        name = body.get("name", template.name)
        return Response(TemplateShape(templates.change(actor, template, name, kept.spec, kept.body)).data)

    @extend_schema(
        summary=gettext_noop("Delete a template"), request=None, responses=answers({204: None}, 404)
    )
    def delete(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        templates.delete(actor, templates.get(actor, id))
        return Response(status=204)


def kept_of(template: Template) -> Kept:
    """Read what a template has. Raise ValidationError if it is no longer valid."""
    body = TemplateLaunch(data=template.body)
    body.is_valid(raise_exception=True)
    return Kept.of(template.tenant.slug, body.validated_data)
