"""REST endpoints for pools, flavors and quotas."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import django_filters as filters
from django.core.validators import RegexValidator
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.rest.actors import actor_of
from accounts.rest.pagination import KeysetPagination
from accounts.rest.schema import answers
from quotas import queries
from quotas.allowed.storage import LIMITS
from quotas.models import Flavor, Pool, Quota, Sharing
from quotas.pools.needs import GpuAsked, cheapest_first, fitting
from quotas.pools.selection import CAPABILITY
from quotas.serializers import FlavorSerializer, PoolSerializer, QuotaSerializer


class PoolFilter(filters.FilterSet):  # type: ignore[misc]
    slug = filters.CharFilter()
    cluster = filters.CharFilter("cluster__slug")
    sharing = filters.ChoiceFilter(choices=Sharing.choices)
    # GPU requirements: a pool passes if its GPUs meet all of them.
    min_memory_mib = filters.NumberFilter(method="leave", min_value=1, max_value=2**31, decimal_places=0)
    min_compute_capability = filters.CharFilter(method="leave", validators=[RegexValidator(CAPABILITY)])
    ecc = filters.BooleanFilter(method="leave")
    product = filters.CharFilter(method="leave")

    def leave(self, pools: QuerySet[Pool], name: str, value: Any) -> QuerySet[Pool]:
        asked = GpuAsked(**{name: value})
        return pools.filter(pk__in=[pool.pk for pool in fitting(Pool.objects.all(), asked)])


class FlavorFilter(filters.FilterSet):  # type: ignore[misc]
    slug = filters.CharFilter()
    pool = filters.CharFilter("pool__slug")


class QuotaFilter(filters.FilterSet):  # type: ignore[misc]
    tenant = filters.CharFilter("tenant__slug")
    pool = filters.CharFilter("pool__slug")


class QuotaPagination(KeysetPagination):
    """Adds `limits` to the page: each tenant's use over all pools, and its limits."""

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        page = super().get_paginated_response_schema(schema)
        used_and_limit = {
            "type": "object",
            "required": ["used", "limit"],
            "properties": {"used": {"type": "number"}, "limit": {"type": "integer", "nullable": True}},
        }
        names = ["cpu_millicores", "memory_mib", "workspaces", *LIMITS, "person_gpus", "person_workspaces"]
        limits = {
            "type": "object",
            "required": ["tenant", *names],
            "properties": {"tenant": {"type": "string"}, **dict.fromkeys(names, used_and_limit)},
        }
        page["properties"]["limits"] = {"type": "array", "items": limits}
        page["required"] = [*page["required"], "limits"]
        return page


class PoolList(ListAPIView[Pool]):
    """Pools, with free GPUs, your own GPUs, and the number of waiting requests.

    If you filter by GPU requirements, all matching pools come on one page, the cheapest first.
    """

    queryset = Pool.objects.select_related("cluster")
    serializer_class = PoolSerializer
    filterset_class = PoolFilter
    search_fields = ["slug", "name", "gpu_product"]
    keyset = ("slug", "id")

    @extend_schema(responses=answers({200: PoolSerializer(many=True)}))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        pools = self.filter_queryset(self.get_queryset())
        if any(request.query_params.get(need.name) for need in fields(GpuAsked)):
            rows = queries.pools_for(actor_of(request), sorted(pools, key=cheapest_first))
            return Response({"results": PoolSerializer(rows, many=True).data, "next": None})
        rows = queries.pools_for(actor_of(request), self.paginate_queryset(pools))
        return self.get_paginated_response(PoolSerializer(rows, many=True).data)


class FlavorList(ListAPIView[Flavor]):
    """Ready-made sizes."""

    queryset = Flavor.objects.select_related("pool")
    serializer_class = FlavorSerializer
    filterset_class = FlavorFilter
    search_fields = ["slug", "name", "pool__slug"]
    keyset = ("slug", "id")

    @extend_schema(responses=answers({200: FlavorSerializer(many=True)}))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


class QuotaList(ListAPIView[Quota]):
    """GPU quotas of your tenants by pool, with current use."""

    serializer_class = QuotaSerializer
    pagination_class = QuotaPagination
    filterset_class = QuotaFilter
    search_fields = ["tenant__slug", "tenant__name", "pool__slug"]
    keyset = ("tenant_id", "id")

    def get_queryset(self) -> QuerySet[Quota]:
        if getattr(self, "swagger_fake_view", False):
            return Quota.objects.none()
        return queries.visible_quotas(actor_of(self.request))

    @extend_schema(responses=answers({200: QuotaSerializer(many=True)}))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        actor = actor_of(request)
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        rows = queries.quotas_for(actor, page)
        response = self.get_paginated_response(QuotaSerializer(rows, many=True).data)
        response.data["limits"] = queries.limits_for(actor)
        return response
