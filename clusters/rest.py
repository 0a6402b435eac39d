"""Clusters and their nodes over REST, for admins. Everybody else has the pools."""

from __future__ import annotations

from typing import Any

import django_filters as filters
from django.db.models import QuerySet
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.views import ListView

from .models import Cluster, Node


class ClusterShape(serializers.ModelSerializer[Cluster]):
    class Meta:
        model = Cluster
        fields = ["id", "slug", "name", "exposure", "version", "unreachable_since", "unreachable_reason"]


class NodeShape(serializers.ModelSerializer[Node]):
    cluster = serializers.SlugRelatedField[Cluster](slug_field="slug", read_only=True)
    allocatable = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="cpu in millicores, memory and storage in bytes, others counted.",
    )

    class Meta:
        model = Node
        fields = ["cluster", "name", "ready", "unschedulable", "labels", "taints", "allocatable"]


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


class NodesView(ListView):
    serializer_class = NodeShape
    filterset_class = NodeFilter
    search_fields = ["name"]
    keyset = ("name", "id")

    def get_queryset(self) -> QuerySet[Any]:
        return Node.objects.select_related("cluster")

    @extend_schema(
        summary=gettext_noop("Their nodes (admins)"), responses=answers({200: NodeShape(many=True)}, 403)
    )
    def get(self, request: Request) -> Response:
        actor_of(request).require(Scope.ADMIN)
        return self.page()
