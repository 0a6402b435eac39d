"""Differences between clusters and rows over REST, for admins, and the actions on them."""

from __future__ import annotations

from uuid import UUID

import django_filters as filters
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.errors import NotThere
from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.views import ListView, checked
from monitoring.models import Finding, What
from monitoring.models.drift import FINDING_IS_OPEN

from . import actions, looks, words

STATES = {
    "open": FINDING_IS_OPEN,
    "accepted": Q(accepted_at__isnull=False, resolved_at=None),
    "over": Q(resolved_at__isnull=False),
}


class FindingShape(serializers.ModelSerializer[Finding]):
    cluster = serializers.CharField(source="cluster.slug")
    message = serializers.SerializerMethodField()
    differs = serializers.SerializerMethodField(help_text="What was changed, a sentence for each field.")
    may = serializers.SerializerMethodField(help_text="Actions that are possible: adopt, recreate, delete.")

    class Meta:
        model = Finding
        fields = (
            "id", "cluster", "what", "kind", "namespace", "name", "uid", "message", "differs", "may", "first_seen_at",
            "accepted_at", "resolved_at",
        )  # fmt: skip

    def get_message(self, finding: Finding) -> str:
        return words.sentence(finding)

    def get_differs(self, finding: Finding) -> list[str]:
        return words.what_differs(finding)

    def get_may(self, finding: Finding) -> list[str]:
        why_not = {
            "adopt": words.why_not_accept(finding),
            "recreate": words.why_not_recreate(finding),
            "delete": words.why_not_delete(finding),
        }
        return [] if finding.resolved_at else [verb for verb, why in why_not.items() if not why]


class FindingFilter(filters.FilterSet):  # type: ignore[misc]
    state = filters.ChoiceFilter(choices=[(name, name) for name in STATES], method="of_state")
    what = filters.ChoiceFilter(choices=What.choices)
    cluster = filters.CharFilter("cluster__slug")

    def of_state(self, rows: QuerySet[Finding], _name: str, state: str) -> QuerySet[Finding]:
        return rows.filter(STATES[state])


class DeleteBody(StrictSerializer):
    with_data = serializers.BooleanField(
        default=False, help_text="Of a volume: its data, which cannot be recovered."
    )


class EmptyBody(StrictSerializer):
    """An empty body."""


class DriftView(ListView):
    write_scope = Scope.ADMIN
    serializer_class = FindingShape
    queryset = Finding.objects.none()
    filterset_class = FindingFilter
    search_fields = ("name", "namespace", "tenant_slug")
    keyset = ("-first_seen_at", "-id")

    def get_queryset(self) -> QuerySet[Finding]:
        return findings(self.request)

    @extend_schema(
        summary=gettext_noop("Differences between the clusters and Berth's rows (admins)"),
        responses=answers({200: FindingShape(many=True)}),
    )
    def get(self, request: Request) -> Response:
        return self.page()


class LookView(APIView):
    write_scope = Scope.ADMIN

    @extend_schema(
        summary=gettext_noop("Check all clusters now; a new difference is shown a minute later (admins)"),
        request=None,
        responses=answers({204: None}),
    )
    def post(self, request: Request) -> Response:
        checked(EmptyBody, request)
        actor = actor_of(request)
        actor.require_whole_person()
        looks.want_all(actor)
        return Response(status=204)


class FindingView(APIView):
    """A base of views of actions: each looks at the cluster again before it does anything."""

    write_scope = Scope.ADMIN
    asks_clusters = True

    def do(self, request: Request, id: UUID, verb: str) -> Response:
        finding = findings(request).filter(pk=id).first()
        if finding is None:
            raise NotThere("not_found", _("There is no such finding."), _("Look in the list."))
        actions.do(verb, actor_of(request), finding)
        return Response(FindingShape(findings(request).get(pk=id)).data)


class AdoptView(FindingView):
    @extend_schema(
        summary=gettext_noop("Accept a change as it is (admins)"),
        request=None,
        responses=answers({200: FindingShape}, 404, 409),
    )
    def post(self, request: Request, id: UUID) -> Response:
        checked(EmptyBody, request)
        return self.do(request, id, "accept")


class RecreateView(FindingView):
    @extend_schema(
        summary=gettext_noop("Make the object again as it should be (admins)"),
        request=None,
        responses=answers({200: FindingShape}, 404, 409),
    )
    def post(self, request: Request, id: UUID) -> Response:
        checked(EmptyBody, request)
        return self.do(request, id, "recreate")


class DeleteView(FindingView):
    @extend_schema(
        summary=gettext_noop("Delete an object that no row wants (admins)"),
        request=DeleteBody,
        responses=answers({200: FindingShape}, 404, 409),
    )
    def post(self, request: Request, id: UUID) -> Response:
        with_data = checked(DeleteBody, request)["with_data"]
        return self.do(request, id, "delete_data" if with_data else "delete")


def findings(request: Request) -> QuerySet[Finding]:
    actor = actor_of(request)
    actor.require_admin()
    return Finding.objects.select_related("cluster", "workspace__tenant", "job__tenant")
