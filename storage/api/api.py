"""REST API of volumes. Views are thin: each rule is in the use case that a view calls."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from django.utils.translation import gettext_noop
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.shapes import NoBody
from accounts.rest.views import ListView, Query, checked
from storage import access, adoption, changes, copies
from storage.models import Kind, Phase, Shared, Volume
from storage.sources import Source

from .serializers import (
    AdoptBody,
    NoteBody,
    SnapshotShape,
    TransferBody,
    VolumeBody,
    VolumeChangeBody,
    VolumeCloneBody,
    VolumeShape,
    volumes_json,
)


class VolumeFilter(django_filters.FilterSet):  # type: ignore[misc]
    tenant = django_filters.CharFilter(field_name="tenant__slug")
    owner = django_filters.CharFilter(field_name="owner__username")
    cluster = django_filters.CharFilter(field_name="cluster__slug")
    name = django_filters.CharFilter()
    kind = django_filters.MultipleChoiceFilter(choices=Kind.choices)
    phase = django_filters.MultipleChoiceFilter(choices=Phase.choices)
    shared = django_filters.MultipleChoiceFilter(choices=Shared.choices)


class VolumesView(ListView):
    write_scope = Scope.VOLUMES
    serializer_class = VolumeShape
    queryset = Volume.objects.none()
    filterset_class = VolumeFilter
    search_fields = ("name", "owner__username")

    def get_queryset(self) -> QuerySet[Volume]:
        return access.visible(actor_of(self.request)).select_related(*access.RELATED)

    @extend_schema(
        summary=gettext_noop("Volumes that you can see, those in the bin too"),
        responses=answers({200: VolumeShape(many=True)}),
    )
    def get(self, request: Request) -> Response:
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(volumes_json(rows or []))

    @extend_schema(
        summary=gettext_noop("Create a volume"),
        request=VolumeBody,
        responses=answers({201: VolumeShape}, 404, 409, 422),
    )
    def post(self, request: Request) -> Response:
        body = checked(VolumeBody, request)
        begins = body.pop("from", None) or {}
        tenant = body.pop("tenant")
        wish = changes.Wish(**body, begins=Source(**begins))
        volume = changes.create(actor_of(request), tenant, wish)
        return answer(volume, 201)


class AdoptView(APIView):
    write_scope = Scope.ADMIN

    @extend_schema(
        summary=gettext_noop("Adopt storage that is there already; for admins"),
        description="It is read-only until an inspection has looked at it and its owner has confirmed it.",
        request=AdoptBody,
        responses=answers({201: VolumeShape}, 403, 404, 409, 422),
    )
    def post(self, request: Request) -> Response:
        body = checked(AdoptBody, request)
        return answer(adoption.adopt(actor_of(request), body.pop("tenant"), adoption.Found(**body)), 201)


class OneVolumeView(APIView):
    """View of the volume in the address. A volume that the caller may not see is a 404."""

    write_scope = Scope.VOLUMES

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.actor = actor_of(request)
        self.volume = access.get(self.actor, kwargs["id"])


class ConfirmView(OneVolumeView):
    @extend_schema(
        summary=gettext_noop("Confirm an adopted volume, so that it can be written to; for its owner"),
        request=NoBody,
        responses=answers({202: VolumeShape, 200: VolumeShape}, 403, 404, 409),
    )
    def post(self, request: Request, id: UUID) -> Response:
        checked(NoBody, request)
        return answer(self.volume, 202 if adoption.confirm(self.actor, self.volume) else 200)


class InspectView(OneVolumeView):
    @extend_schema(
        summary=gettext_noop("Inspect an adopted volume again"),
        request=NoBody,
        responses=answers({202: VolumeShape, 200: VolumeShape}, 403, 404, 409),
    )
    def post(self, request: Request, id: UUID) -> Response:
        checked(NoBody, request)
        return answer(self.volume, 202 if adoption.inspect_again(self.actor, self.volume) else 200)


class DeleteQuery(Query):
    now = serializers.BooleanField(default=False)


class VolumeView(OneVolumeView):
    @extend_schema(summary=gettext_noop("One volume"), responses=answers({200: VolumeShape}, 404))
    def get(self, request: Request, id: UUID) -> Response:
        return answer(self.volume)

    @extend_schema(
        summary=gettext_noop("Grow, rename or share it"),
        description="A size below the present one is refused with 422 `cannot_shrink`.",
        request=VolumeChangeBody,
        responses=answers({200: VolumeShape, 202: VolumeShape}, 404, 409, 422),
    )
    def patch(self, request: Request, id: UUID) -> Response:
        grows = changes.change(self.actor, self.volume, checked(VolumeChangeBody, request))
        return answer(self.volume, 202 if grows else 200)

    @extend_schema(
        summary=gettext_noop("Put it into the bin for 7 days"),
        parameters=[OpenApiParameter("now", bool, description="Delete it with its data at once.")],
        responses=answers({202: VolumeShape, 200: VolumeShape}, 404, 409),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        changed = changes.delete(self.actor, self.volume, **DeleteQuery.of(request))
        return answer(self.volume, 202 if changed else 200)


class RestoreView(OneVolumeView):
    @extend_schema(
        summary=gettext_noop("Take it out of the bin"),
        request=NoBody,
        responses=answers({202: VolumeShape, 200: VolumeShape}, 404, 409),
    )
    def post(self, request: Request, id: UUID) -> Response:
        checked(NoBody, request)
        changed = changes.restore(self.actor, self.volume)
        return answer(self.volume, 202 if changed else 200)


class TransferView(OneVolumeView):
    @extend_schema(
        summary=gettext_noop("Hand it to another member of its tenant"),
        request=TransferBody,
        responses=answers({200: VolumeShape}, 404, 409, 422),
    )
    def post(self, request: Request, id: UUID) -> Response:
        changes.transfer(self.actor, self.volume, **checked(TransferBody, request))
        return answer(self.volume)


class SnapshotView(OneVolumeView):
    @extend_schema(
        summary=gettext_noop("Keep it as it is now"),
        request=NoteBody,
        responses=answers({202: SnapshotShape}, 404, 409, 422),
    )
    def post(self, request: Request, id: UUID) -> Response:
        taken = copies.snapshot(self.actor, self.volume, **checked(NoteBody, request))
        return Response(SnapshotShape(taken).data, status=202)


class SnapshotsView(OneVolumeView):
    @extend_schema(
        summary=gettext_noop("Snapshots and versions of it"),
        responses=answers({200: SnapshotShape(many=True)}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        return Response({"results": SnapshotShape(copies.shown(self.volume), many=True).data})


class OneSnapshotView(OneVolumeView):
    @extend_schema(
        summary=gettext_noop("Delete a snapshot or a version with its data"),
        responses=answers({202: SnapshotShape, 200: SnapshotShape}, 404, 409),
    )
    def delete(self, request: Request, id: UUID, snapshot: UUID) -> Response:
        taken = copies.get(self.actor, self.volume, snapshot)
        changed = copies.delete(self.actor, self.volume, taken)
        taken.refresh_from_db()
        return Response(SnapshotShape(taken).data, status=202 if changed else 200)


class PublishView(OneVolumeView):
    @extend_schema(
        summary=gettext_noop("Freeze a dataset as its next version"),
        request=NoteBody,
        responses=answers({202: VolumeShape}, 404, 409, 422),
    )
    def post(self, request: Request, id: UUID) -> Response:
        copies.publish(self.actor, self.volume, **checked(NoteBody, request))
        return answer(self.volume, 202)


class CloneView(OneVolumeView):
    @extend_schema(
        summary=gettext_noop("Create a volume that begins with its files"),
        request=VolumeCloneBody,
        responses=answers({202: VolumeShape}, 404, 409, 422),
    )
    def post(self, request: Request, id: UUID) -> Response:
        return answer(copies.clone(self.actor, self.volume, **checked(VolumeCloneBody, request)), 202)


def answer(volume: Volume, status: int = 200) -> Response:
    """Return the volume as it is now."""
    return Response(volumes_json([changes.fresh(volume)])[0], status=status)
