"""Bodies of the endpoints for volumes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.rest.serializers import StrictSerializer
from storage import problems, versions
from storage.adoption import KINDS
from storage.copies import LONGEST_NOTE
from storage.models import LARGEST_MIB, Access, Adoption, Kind, Phase, Shared, Snapshot, Volume
from storage.mounts.leasing import NO_USE, Use, uses_of


class SourceBody(StrictSerializer):
    """Source of a new volume: one of the two."""

    snapshot = serializers.UUIDField(required=False)
    volume = serializers.UUIDField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs) != 1:
            raise serializers.ValidationError({"snapshot": [_("Give either snapshot or volume.")]})
        return attrs


class VolumeBody(StrictSerializer):
    tenant = serializers.CharField(max_length=40)
    cluster = serializers.CharField(
        required=False, default="", max_length=40, help_text="Its slug; needed where there are several."
    )
    name = serializers.CharField(max_length=63)
    kind = serializers.ChoiceField(choices=Kind.choices)
    size_mib = serializers.IntegerField(min_value=1, max_value=LARGEST_MIB)
    shared = serializers.ChoiceField(required=False, default=Shared.NO, choices=Shared.choices)

    def get_fields(self) -> dict[str, Any]:
        """Add `from`, which is a keyword in Python."""
        return {**super().get_fields(), "from": SourceBody(required=False, allow_null=True)}


class VolumeChangeBody(StrictSerializer):
    """Fields that are left out stay."""

    size_mib = serializers.IntegerField(required=False, min_value=1, max_value=LARGEST_MIB)
    name = serializers.CharField(required=False, max_length=63)
    shared = serializers.ChoiceField(required=False, choices=Shared.choices)
    main = serializers.ChoiceField(
        required=False, choices=[True], help_text="Let new workspaces of its owner mount this home."
    )


class AdoptBody(StrictSerializer):
    """Storage in the cluster: a persistent volume that nobody uses, or a PVC in the tenant's namespace."""

    tenant = serializers.CharField(max_length=40)
    cluster = serializers.CharField(
        required=False, default="", max_length=40, help_text="Its slug; needed where there are several."
    )
    owner = serializers.CharField(max_length=150)
    name = serializers.CharField(max_length=63)
    kind = serializers.ChoiceField(choices=[kind.value for kind in KINDS])
    persistent_volume = serializers.CharField(required=False, default="", max_length=253)
    claim = serializers.CharField(required=False, default="", max_length=253)


class NoteBody(StrictSerializer):
    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=LONGEST_NOTE)


class VolumeCloneBody(StrictSerializer):
    name = serializers.CharField(max_length=63)


class TransferBody(StrictSerializer):
    username = serializers.CharField(max_length=150)


class ProblemShape(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    hint = serializers.CharField(allow_blank=True)


class LeaseShape(serializers.Serializer[Any]):
    mode = serializers.ChoiceField(choices=["free", "writer", "readers"])
    holders = serializers.ListField(child=serializers.CharField())
    waiting = serializers.ListField(child=serializers.CharField())


class SnapshotShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    number = serializers.IntegerField(allow_null=True, help_text="Of a published version; null: a snapshot.")
    note = serializers.CharField(allow_blank=True)
    size_mib = serializers.IntegerField(help_text="0 until it is ready.")
    created_at = serializers.DateTimeField()
    by = serializers.CharField(source="by.username")
    phase = serializers.CharField(help_text="As a volume's.")
    problem = serializers.SerializerMethodField()

    @extend_schema_field(ProblemShape(allow_null=True))
    def get_problem(self, row: Snapshot) -> dict[str, str] | None:
        return problems.shown(row.problem, row.problem_data)


class InspectionShape(serializers.Serializer[Any]):
    file_system = serializers.CharField()
    size_mib = serializers.IntegerField()
    used_mib = serializers.IntegerField()
    uid = serializers.IntegerField(help_text="Owner of its top folder.")
    names = serializers.ListField(
        child=serializers.CharField(), help_text="A sample; folders end in a slash."
    )
    more = serializers.IntegerField(help_text="How many names are left out.")
    unreadable = serializers.BooleanField()


class AdoptionShape(serializers.Serializer[Any]):
    state = serializers.ChoiceField(choices=Adoption.choices)
    inspection = InspectionShape(allow_null=True)
    problem = ProblemShape(allow_null=True)


class VolumeShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    tenant = serializers.CharField(source="tenant.slug")
    owner = serializers.CharField(source="owner.username")
    cluster = serializers.CharField(source="cluster.slug")
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=Kind.choices)
    shared = serializers.ChoiceField(choices=Shared.choices)
    main = serializers.BooleanField(
        source="is_main", help_text="The home that new workspaces of its owner mount."
    )
    size_mib = serializers.IntegerField(help_text="What it has now; 0 before it is made.")
    requested_mib = serializers.IntegerField()
    used_mib = serializers.IntegerField(allow_null=True, help_text="As measured last; null: not known.")
    used_at = serializers.DateTimeField(
        allow_null=True, help_text="When it was measured. Only nodes that mount the volume measure it."
    )
    phase = serializers.ChoiceField(choices=Phase.choices)
    problem = serializers.SerializerMethodField()
    node = serializers.SerializerMethodField(
        help_text="The one node that can mount it; null: any, or none yet."
    )
    enforced = serializers.BooleanField(
        source="is_enforced", help_text="False: the storage does not keep it to its size."
    )
    access = serializers.SerializerMethodField()
    mounts = serializers.SerializerMethodField(help_text="Runs that have it mounted now.")
    lease = serializers.SerializerMethodField()
    adoption = serializers.SerializerMethodField(
        help_text="Of one that was there already, until its owner has confirmed it; it is read-only. Else null."
    )
    versions = serializers.SerializerMethodField(help_text="Published versions, newest first.")
    bin_until = serializers.DateTimeField(allow_null=True, help_text="When it is deleted for good.")
    created_at = serializers.DateTimeField()

    def get_mounts(self, volume: Volume) -> list[dict[str, Any]]:
        return self._uses(volume).mounts

    @extend_schema_field(LeaseShape)
    def get_lease(self, volume: Volume) -> dict[str, Any]:
        return self._uses(volume).lease

    @extend_schema_field(SnapshotShape(many=True))
    def get_versions(self, volume: Volume) -> Any:
        return SnapshotShape(self.context["versions"].get(volume.pk, ()), many=True).data

    def _uses(self, volume: Volume) -> Use:
        found: dict[Any, Use] = self.context["uses"]
        return found.get(volume.pk, NO_USE)

    @extend_schema_field(ProblemShape(allow_null=True))
    def get_problem(self, volume: Volume) -> dict[str, str] | None:
        return problem_of(volume)

    @extend_schema_field(AdoptionShape(allow_null=True))
    def get_adoption(self, volume: Volume) -> dict[str, Any] | None:
        return adoption_of(volume)

    def get_node(self, volume: Volume) -> str | None:
        return volume.node or None

    def get_access(self, volume: Volume) -> list[Access]:
        return [Access(volume.access)] if volume.access else []


def problem_of(volume: Volume) -> dict[str, str] | None:
    """Return what is wrong with the volume in the reader's language, as {code, message, hint}."""
    return problems.shown(*problems.of(volume))


def adoption_of(volume: Volume) -> dict[str, Any] | None:
    """Return how far its adoption is, and what the inspection found; None if it is not being adopted."""
    if not volume.adoption:
        return None
    found = volume.inspection or {}
    code = found.get("problem", "")
    return {
        "state": volume.adoption,
        "inspection": found if volume.inspection is not None and not code else None,
        "problem": problems.shown(code, found.get("data") or {}),
    }


def volumes_json(volumes: Iterable[Volume]) -> list[dict[str, Any]]:
    """Return the volumes with their uses, with as many queries as for one."""
    volumes = list(volumes)
    ids = [volume.pk for volume in volumes]
    context = {"uses": uses_of(ids), "versions": versions.of(ids)}
    return [dict(shown) for shown in VolumeShape(volumes, many=True, context=context).data]
