"""Bodies of requests and answers that workspaces and jobs have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.rest.serializers import StrictSerializer
from clusters.site import environment
from quotas.models.pools import LEAST_CPU_MILLICORES, LEAST_MEMORY_MIB
from quotas.namespaces.manifests import JUPYTER_PORT, SSH_PORT
from quotas.pools.needs import GpuAsked
from storage.connections import MOST_OF_A_RUN
from storage.models import LATEST
from storage.mounts.mounting import LONGEST_PATH, VERSION, MountWish
from workloads.images import LONGEST_REFERENCE
from workloads.models import Exposition
from workloads.sizes.sizing import SizeAsked

LARGEST_MIB = 16 * 1024 * 1024
LONGEST_METRICS_PATH = 200
OWN_PORTS = (JUPYTER_PORT, SSH_PORT)


class Environment(serializers.DictField):
    """Names to values. Malformed names are a 400; the launch itself refuses reserved names."""

    child = serializers.CharField(allow_blank=True, trim_whitespace=False)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if isinstance(data, Mapping) and not all(environment.NAME.fullmatch(str(name)) for name in data):
            raise serializers.ValidationError(
                _("Names have letters, digits and _, and do not begin with a digit.")
            )
        values: dict[str, str] = super().to_internal_value(data)
        return values


class ReasonShape(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    hint = serializers.CharField(allow_blank=True)


class GpuBody(StrictSerializer):
    """Minimum requirements on a GPU to find."""

    min_memory_mib = serializers.IntegerField(required=False, min_value=1, max_value=LARGEST_MIB)
    min_compute_capability = serializers.RegexField(r"^\d{1,2}(\.\d{1,2})?$", required=False)
    ecc = serializers.BooleanField(required=False)
    product = serializers.CharField(required=False, max_length=120)


class SizeBody(StrictSerializer):
    """Size. Give exactly one of flavor, pool or gpu to choose the place; other fields set amounts."""

    flavor = serializers.CharField(required=False, max_length=40)
    pool = serializers.CharField(required=False, max_length=40)
    gpu = GpuBody(required=False)
    gpus = serializers.FloatField(required=False, min_value=0, max_value=4096)
    gpu_memory_mib = serializers.IntegerField(required=False, min_value=1, max_value=LARGEST_MIB)
    cpu = serializers.FloatField(required=False, min_value=LEAST_CPU_MILLICORES / 1000, max_value=1024)
    memory_mib = serializers.IntegerField(required=False, min_value=LEAST_MEMORY_MIB, max_value=LARGEST_MIB)


@extend_schema_field({"oneOf": [{"type": "integer", "minimum": 1}, {"type": "string", "enum": [LATEST]}]})
class VersionField(serializers.Field[Any, str, Any, Any]):
    """Version of a dataset, as `MountWish.version` has it."""

    def to_internal_value(self, data: Any) -> str:
        text = "" if isinstance(data, bool) else str(data)
        if not VERSION.fullmatch(text):
            raise serializers.ValidationError(_("Use a version's number, or latest."))
        return text

    def to_representation(self, value: Any) -> Any:
        return value


class MountBody(StrictSerializer):
    volume = serializers.UUIDField()
    version = VersionField(
        required=False,
        allow_null=True,
        default=None,
        help_text="A published version's number, or `latest`; null: the volume itself.",
    )
    path = serializers.CharField(max_length=LONGEST_PATH)

    def get_fields(self) -> dict[str, Any]:
        """Add `read_only`, which is an option of every field in the framework."""
        return {**super().get_fields(), "read_only": serializers.BooleanField(required=False, default=True)}


class ExpositionBody(StrictSerializer):
    """Address at which its program serves figures: Prometheus finds it by the annotations of its pod."""

    port = serializers.IntegerField(min_value=1024, max_value=65535)
    path = serializers.RegexField(
        r"^/[A-Za-z0-9._~/-]*\Z",
        required=False,
        default="/metrics",
        max_length=LONGEST_METRICS_PATH,
        trim_whitespace=False,
    )

    def validate_port(self, value: int) -> int:
        if value in OWN_PORTS:
            raise serializers.ValidationError(_("JupyterLab and SSH have this port. Use another."))
        return value


class ExpositionShape(serializers.Serializer[Any]):
    port = serializers.IntegerField()
    path = serializers.CharField()


class EnvironmentBody(StrictSerializer):
    env = Environment(required=False, default=dict)
    secret_env = Environment(required=False, default=dict, write_only=True, help_text="Never given back.")


class ImageBody(StrictSerializer):
    image = serializers.CharField(
        required=False, default="", max_length=40, help_text="Of the list of images."
    )
    image_reference = serializers.CharField(
        required=False,
        default="",
        max_length=LONGEST_REFERENCE,
        help_text="Instead of `image`: a container image by its reference, from a registry that the tenant may use.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs["image"] and not attrs["image_reference"]:
            raise serializers.ValidationError({"image": [_("Name an image, or give image_reference.")]})
        return attrs


class RequestBody(ImageBody, EnvironmentBody):
    """Person, image and settings: fields of a launch and of a job."""

    tenant = serializers.CharField(max_length=40)
    name = serializers.CharField(max_length=63)
    repository = serializers.CharField(required=False, default="", allow_blank=True, max_length=1024)
    priority = serializers.IntegerField(required=False, default=0, min_value=-100, max_value=100)
    volumes = MountBody(many=True, required=False, default=list)
    metrics = ExpositionBody(required=False, allow_null=True, default=None)
    connections = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        default=list,
        max_length=MOST_OF_A_RUN,
        help_text="Your connections whose keys it gets as environment; the first also as AWS_…",
    )


def wishes_of(volumes: Iterable[Mapping[str, Any]]) -> list[MountWish]:
    return [
        MountWish(
            volume=one["volume"], path=one["path"], read_only=one["read_only"], version=one["version"] or ""
        )
        for one in volumes
    ]


def exposition_of(body: Mapping[str, Any]) -> Exposition | None:
    return Exposition(**body["metrics"]) if body["metrics"] else None


def size_asked(body: Mapping[str, Any]) -> SizeAsked:
    return SizeAsked(
        flavor=body.get("flavor"),
        pool=body.get("pool"),
        gpu=GpuAsked(**body["gpu"]) if "gpu" in body else None,
        # As it was written: 0.14 is 14/100, not the nearest binary fraction.
        gpus=Fraction(str(body["gpus"])) if "gpus" in body else None,
        gpu_memory_mib=body.get("gpu_memory_mib"),
        cpu_millicores=round(body["cpu"] * 1000) if "cpu" in body else None,
        memory_mib=body.get("memory_mib"),
    )
