"""Clusters and their nodes over REST, for admins. Other people read the pools instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import django_filters as filters
from django.db.models import QuerySet
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access import not_there
from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.shapes import NoBody
from accounts.rest.views import ListView, checked

from . import explain, unknown_causes
from .doctor import keeping, proving
from .doctor.findings import Check, Level, as_json
from .isolation.networks import missing
from .models import Cluster, Gpu, Node, UnknownCause
from .nodes.gpus import gpus_on


class ClusterShape(serializers.ModelSerializer[Cluster]):
    missing_networks = serializers.SerializerMethodField(
        help_text="Fields to fill in before anything can be launched there: pod_cidrs, service_cidrs, api_cidrs."
    )

    class Meta:
        model = Cluster
        fields = [
            "id", "slug", "name", "exposure", "version", "unreachable_since", "unreachable_reason",
            "without_isolation", "missing_networks",
        ]  # fmt: skip

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_missing_networks(self, cluster: Cluster) -> list[str]:
        return missing(cluster)


class OutShape(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    hint = serializers.CharField(allow_blank=True)


def why_out(code: str, data: Mapping[str, Any]) -> dict[str, str] | None:
    if not code:
        return None
    return {"code": code, "message": explain.sentence(code, data), "hint": explain.hint(code, data)}


class GpuShape(serializers.ModelSerializer[Gpu]):
    temperature_celsius = serializers.IntegerField(
        source="sample.temperature_celsius", default=None, allow_null=True
    )
    power_watts = serializers.FloatField(source="sample.power_watts", default=None, allow_null=True)
    out = serializers.SerializerMethodField(help_text="Why it is given to nobody new; null: it works.")

    class Meta:
        model = Gpu
        fields = [
            "uuid", "index", "name", "memory_mib", "ecc", "compute_capability", "utilization_percent",
            "memory_used_mib", "temperature_celsius", "power_watts", "seen_at", "out",
        ]  # fmt: skip

    @extend_schema_field(OutShape(allow_null=True))
    def get_out(self, gpu: Gpu) -> dict[str, str] | None:
        return why_out(gpu.out_code, {"gpu": gpu.index, "node": gpu.node})


class NodeShape(serializers.ModelSerializer[Node]):
    cluster = serializers.SlugRelatedField[Cluster](slug_field="slug", read_only=True)
    allocatable = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="cpu in millicores, memory and storage in bytes, others counted.",
    )

    system = serializers.DictField(help_text="Versions, as the node's status has them: kernelVersion, …")
    conditions = serializers.DictField(help_text="By type: status, reason and message.")
    out = serializers.SerializerMethodField(help_text="Why nothing new starts there; null: nothing is wrong.")
    gpus_out = serializers.SerializerMethodField(help_text="The same, of what needs a GPU.")
    gpus = GpuShape(many=True, help_text="As their node's agent told them last.")

    class Meta:
        model = Node
        fields = [
            "cluster", "name", "ready", "unschedulable", "labels", "taints", "allocatable", "system", "conditions",
            "out", "gpus_out", "gpus",
        ]  # fmt: skip

    @extend_schema_field(OutShape(allow_null=True))
    def get_out(self, node: Node) -> dict[str, str] | None:
        return why_out(node.out_code, {"node": node.name})

    @extend_schema_field(OutShape(allow_null=True))
    def get_gpus_out(self, node: Node) -> dict[str, str] | None:
        return why_out(node.gpus_out_code, {"node": node.name})


class NodeFilter(filters.FilterSet):  # type: ignore[misc]
    cluster = filters.CharFilter("cluster__slug")
    name = filters.CharFilter()
    ready = filters.BooleanFilter()


class ClustersView(ListView):
    serializer_class = ClusterShape
    queryset = Cluster.objects.all()
    filterset_fields = ["slug", "exposure"]
    search_fields = ["slug", "name"]
    keyset = ("slug", "id")

    @extend_schema(
        summary=gettext_noop("The clusters (admins)"), responses=answers({200: ClusterShape(many=True)}, 403)
    )
    def get(self, request: Request) -> Response:
        actor_of(request).require(Scope.ADMIN)
        return self.page()


class ProveView(APIView):
    write_scope = Scope.ADMIN

    @extend_schema(
        summary=gettext_noop("Prove that the cluster keeps tenants apart; doctor shows the result (admins)"),
        request=None,
        responses=answers({204: None}, 404, 409),
    )
    def post(self, request: Request, cluster: str) -> Response:
        checked(NoBody, request)
        actor = actor_of(request)
        actor.require_admin()
        proving.prover().start(actor, one_cluster(cluster))
        return Response(status=204)


def one_cluster(slug: str) -> Cluster:
    found = Cluster.objects.filter(slug=slug).first()
    if found is None:
        raise not_there()
    return found


class DoctorFindingShape(serializers.Serializer[Any]):
    check = serializers.ChoiceField(choices=Check.choices, allow_null=True)
    level = serializers.ChoiceField(choices=Level.choices)
    message = serializers.CharField()
    hint = serializers.CharField(allow_blank=True)
    yaml = serializers.CharField(allow_blank=True, help_text="What to add to Berth's ClusterRole.")


class DoctorShape(serializers.Serializer[Any]):
    results = DoctorFindingShape(many=True)


class DoctorView(APIView):
    write_scope = Scope.ADMIN

    @extend_schema(
        summary=gettext_noop("What doctor finds in the cluster now (admins)"),
        description="It looks at the cluster, which takes seconds, and changes nothing there.",
        responses=answers({200: DoctorShape}, 404),
    )
    def get(self, request: Request, cluster: str) -> Response:
        actor_of(request).require(Scope.ADMIN)
        return Response({"results": as_json(keeping.found_now(one_cluster(cluster)))})


class NodesView(ListView):
    serializer_class = NodeShape
    filterset_class = NodeFilter
    search_fields = ["name"]
    keyset = ("name", "id")

    def get_queryset(self) -> QuerySet[Any]:
        return Node.objects.select_related("cluster")

    def paginate_queryset(self, queryset: Any) -> Any:
        """Add the GPUs of this page's nodes. Their rows know the node by its name."""
        nodes: Any = super().paginate_queryset(queryset)
        found = gpus_on(nodes)
        for node in nodes:
            node.gpus = found[node.cluster_id, node.name]
        return nodes

    @extend_schema(
        summary=gettext_noop("Their nodes (admins)"), responses=answers({200: NodeShape(many=True)}, 403)
    )
    def get(self, request: Request) -> Response:
        actor_of(request).require(Scope.ADMIN)
        return self.page()


class UnexplainedShape(serializers.ModelSerializer[UnknownCause]):
    id = serializers.CharField(source="digest")
    cluster = serializers.SlugRelatedField[Cluster](slug_field="slug", read_only=True, allow_null=True)

    class Meta:
        model = UnknownCause
        fields = ["id", "source", "text", "count", "first_at", "last_at", "cluster", "dismissed_at"]


class UnexplainedMessagesView(ListView):
    serializer_class = UnexplainedShape
    queryset = UnknownCause.objects.select_related("cluster")
    filterset_fields = ["source"]
    search_fields = ["text"]
    keyset = ("-last_at", "digest")

    @extend_schema(
        summary=gettext_noop("Messages of the clusters that no rule explains (admins)"),
        responses=answers({200: UnexplainedShape(many=True)}, 403),
    )
    def get(self, request: Request) -> Response:
        actor_of(request).require(Scope.ADMIN)
        return self.page()


class UnexplainedMessageView(APIView):
    write_scope = Scope.ADMIN

    @extend_schema(
        summary=gettext_noop("Dismiss a message that needs no rule (admins)"),
        request=None,
        responses=answers({200: UnexplainedShape}, 403, 404),
    )
    def post(self, request: Request, digest: str) -> Response:
        checked(NoBody, request)
        actor = actor_of(request)
        actor.require_admin()
        row = one_message(digest)
        unknown_causes.dismiss(actor, row)
        row.refresh_from_db()
        return Response(UnexplainedShape(row).data)

    @extend_schema(
        summary=gettext_noop("Delete a message that a rule explains now (admins)"),
        responses=answers({204: None}, 403, 404),
    )
    def delete(self, request: Request, digest: str) -> Response:
        actor = actor_of(request)
        actor.require_admin()
        unknown_causes.delete(actor, one_message(digest))
        return Response(status=204)


def one_message(digest: str) -> UnknownCause:
    found = UnknownCause.objects.select_related("cluster").filter(pk=digest).first()
    if found is None:
        raise not_there()
    return found
