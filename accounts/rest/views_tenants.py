"""Tenants and their members over REST."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import members
from accounts.access import tenant_by_slug, visible_tenants
from accounts.models import Membership, Scope, Tenant
from accounts.rest import shapes
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.views import ListView, checked


class TenantsView(ListView):
    write_scope = Scope.ADMIN
    serializer_class = shapes.TenantShape
    queryset = Tenant.objects.none()
    filterset_fields = ("slug", "name")
    search_fields = ("slug", "name")
    keyset = ("slug", "id")

    def get_queryset(self) -> QuerySet[Tenant]:
        return visible_tenants(actor_of(self.request))

    @extend_schema(
        summary=gettext_noop("Tenants that you can see"),
        responses=answers({200: shapes.TenantShape(many=True)}),
    )
    def get(self, request: Request) -> Response:
        return self.page()

    @extend_schema(
        summary=gettext_noop("Create a tenant (admins)"),
        request=shapes.NewTenant,
        responses=answers({201: shapes.TenantShape}, 409, 422),
    )
    def post(self, request: Request) -> Response:
        tenant = members.create_tenant(actor_of(request), **checked(shapes.NewTenant, request))
        return Response(shapes.TenantShape(tenant).data, status=201)


class MembersView(ListView):
    write_scope = Scope.WORKSPACES
    serializer_class = shapes.MemberShape
    queryset = Membership.objects.none()
    filterset_fields = ("role",)
    search_fields = ("user__username",)
    keyset = ("id", "id")

    def get_queryset(self) -> QuerySet[Membership]:
        tenant = tenant_by_slug(actor_of(self.request), self.kwargs["slug"])
        return Membership.objects.filter(tenant=tenant).select_related("user")

    @extend_schema(
        summary=gettext_noop("Members of a tenant"),
        responses=answers({200: shapes.MemberShape(many=True)}, 404),
    )
    def get(self, request: Request, slug: str) -> Response:
        return self.page()

    @extend_schema(
        summary=gettext_noop("Add a person, or change their role (owners)"),
        request=shapes.NewMember,
        responses=answers({201: shapes.MemberShape}, 404, 409, 422),
    )
    def post(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        tenant = tenant_by_slug(actor, slug)
        membership = members.set_role(actor, tenant, **checked(shapes.NewMember, request))
        return Response(shapes.MemberShape(membership).data, status=201)


class MemberView(APIView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("Change a person's role (owners)"),
        request=shapes.NewRole,
        responses=answers({200: shapes.MemberShape}, 404, 409, 422),
    )
    def patch(self, request: Request, slug: str, username: str) -> Response:
        actor = actor_of(request)
        tenant = tenant_by_slug(actor, slug)
        members.member(tenant, username)
        membership = members.set_role(actor, tenant, username, **checked(shapes.NewRole, request))
        return Response(shapes.MemberShape(membership).data)

    @extend_schema(
        summary=gettext_noop("Remove a person from a tenant (owners)"),
        request=None,
        responses=answers({204: None}, 404, 409),
    )
    def delete(self, request: Request, slug: str, username: str) -> Response:
        actor = actor_of(request)
        members.remove(actor, tenant_by_slug(actor, slug), username)
        return Response(status=204)
