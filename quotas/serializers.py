"""Read-only shapes of pools, flavors and quotas in the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from quotas.models import Flavor, Sharing
from quotas.scheduling import as_gpus


@extend_schema_field(OpenApiTypes.NUMBER)
class GPUsField(serializers.Field[Any, Any, Any, Any]):
    """Number of GPUs: 4, or 0.25 of a shared one."""

    def to_representation(self, value: float) -> float:
        return value


class GPUSerializer(serializers.Serializer[Any]):
    """GPU model of a pool. Null: the pool has no GPUs, or the value is unknown."""

    product = serializers.CharField(allow_null=True)
    memory_mib = serializers.IntegerField(allow_null=True)
    compute_capability = serializers.CharField(allow_null=True)
    ecc = serializers.BooleanField(allow_null=True)


class PoolGPUsSerializer(serializers.Serializer[Any]):
    total = GPUsField()
    free = GPUsField(help_text="On nodes that are ready, without those kept for a booking.")
    mine = GPUsField(help_text="Held by you.")


class PoolCountsSerializer(serializers.Serializer[Any]):
    """The same in the unit in which people ask: slices where a GPU is cut into some, else GPUs."""

    total = GPUsField()
    free = GPUsField()
    booked = GPUsField(help_text="Kept for bookings that have begun.")
    mine = GPUsField()
    largest = GPUsField(help_text="Free on one node, at most.")


class PoolNodesSerializer(serializers.Serializer[Any]):
    total = serializers.IntegerField()
    ready = serializers.IntegerField()


class PoolOutSerializer(serializers.Serializer[Any]):
    """Nodes and GPUs that accept nothing new now."""

    nodes_not_ready = serializers.IntegerField()
    nodes_cordoned = serializers.IntegerField()
    nodes_unwell = serializers.IntegerField(help_text="They, or some of their GPUs, do not work.")
    nodes_tainted = serializers.IntegerField(help_text="By a taint that the pool does not tolerate.")
    gpus = GPUsField(help_text="Of those nodes.")
    broken_gpus = GPUsField(help_text="Of the other nodes.")


class PoolSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField()
    name = serializers.CharField()
    cluster = serializers.CharField()
    gpu = GPUSerializer()
    unit_memory_mib = serializers.IntegerField(allow_null=True, help_text="Of an instance or replica.")
    units_per_gpu = serializers.IntegerField(help_text="Into how many a GPU is cut.")
    sharing = serializers.ChoiceField(Sharing.choices, allow_null=True)
    isolation = serializers.CharField(allow_null=True)
    neighbours = serializers.CharField(
        allow_null=True, help_text="What those beside you on a GPU can do to you."
    )
    gives = serializers.CharField(allow_null=True, help_text="What can be asked for of a GPU.")
    gpus = PoolGPUsSerializer()
    counted = PoolCountsSerializer()
    largest_free_on_one_node = GPUsField()
    nodes = PoolNodesSerializer()
    out = PoolOutSerializer()
    waiting = serializers.IntegerField(help_text="How many requests wait.")
    next_free_at = serializers.DateTimeField(allow_null=True)


class FlavorSerializer(serializers.ModelSerializer[Flavor]):
    pool = serializers.CharField(source="pool.slug")
    gpus = serializers.SerializerMethodField()
    cpu = serializers.SerializerMethodField()

    class Meta:
        model = Flavor
        fields = ["slug", "name", "pool", "gpus", "cpu", "memory_mib"]

    @extend_schema_field(OpenApiTypes.NUMBER)
    def get_gpus(self, flavor: Flavor) -> float:
        return as_gpus(flavor.units, flavor.pool.units_per_gpu)

    @extend_schema_field(OpenApiTypes.NUMBER)
    def get_cpu(self, flavor: Flavor) -> float:
        return as_gpus(flavor.cpu_millicores, 1000)


class QuotaSerializer(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    pool = serializers.CharField()
    nominal_gpus = GPUsField()
    borrowed_gpus = GPUsField(help_text="Of those in use, what is beyond its own.")
    used_gpus = GPUsField()
    limit_gpus = GPUsField(help_text="Its own, and what it may borrow.")
    weight = serializers.IntegerField(help_text="Its part where several wait.")
    longest_runtime_minutes = serializers.IntegerField(
        allow_null=True, help_text="Of what runs in the tenant. Null: no limit."
    )
