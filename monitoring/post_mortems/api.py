"""REST API of post-mortems."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.views import ListView, checked
from monitoring.models import PostMortem
from monitoring.models.post_mortems import LONGEST_NOTE
from quotas.models import Claim
from workloads.serializers import ReasonShape

from . import access, notes
from .representation import briefs, note_json, whole


class PostMortemNoteBody(StrictSerializer):
    text = serializers.CharField(max_length=LONGEST_NOTE)


class PostMortemNoteShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    author = serializers.CharField()
    at = serializers.DateTimeField()
    text = serializers.CharField()


class VerdictShape(ReasonShape):
    from_log = serializers.BooleanField(help_text="It rests on the program's own last lines.")


class PostMortemShape(serializers.Serializer[Any]):
    id = serializers.UUIDField(help_text="Of the run.")
    tenant = serializers.CharField()
    owner = serializers.CharField()
    workspace = serializers.UUIDField(allow_null=True)
    job = serializers.UUIDField(allow_null=True)
    name = serializers.CharField()
    index = serializers.IntegerField(allow_null=True, help_text="Part of the job.")
    attempt = serializers.IntegerField(allow_null=True)
    cluster = serializers.CharField(allow_null=True)
    node = serializers.CharField(allow_null=True)
    pool = serializers.CharField(allow_null=True)
    image = serializers.CharField(allow_null=True)
    gpus = serializers.ListField(child=serializers.CharField(), help_text="UUIDs.")
    happened = serializers.ChoiceField(choices=PostMortem.Happened.choices)
    verdict = VerdictShape()
    exit_code = serializers.IntegerField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField()
    is_complete = serializers.BooleanField(help_text="False: more is being gathered, for about a minute.")


class AlikeShape(PostMortemShape):
    shares = serializers.ListField(
        child=serializers.ChoiceField(choices=["holder", "gpu", "node", "verdict"])
    )


class LastLineShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField(allow_null=True)
    text = serializers.CharField()


class MissingShape(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()


class WholePostMortemShape(PostMortemShape):
    size = serializers.JSONField(allow_null=True, help_text="{gpus, cpu, memory_mib, nodes}")
    nodes = serializers.ListField(child=serializers.CharField())
    gpu_facts = serializers.JSONField(help_text="[{uuid, name, index, node, out_code, health}]")
    gpu_use_percent = serializers.FloatField(allow_null=True)
    gpu_memory_peak_mib = serializers.IntegerField(allow_null=True)
    memory_peak_mib = serializers.IntegerField(allow_null=True)
    ends = serializers.JSONField(
        help_text="[{pod, node, container, exit_code, signal, reason, started_at, finished_at, has_restarted}]"
    )
    pods = serializers.JSONField(help_text="[{name, node, phase, reason, message, deleted_at}]")
    oom_kills = serializers.JSONField(
        allow_null=True, help_text="{kills, last_at}; null: the agent of the node does not count them."
    )
    xids = serializers.JSONField(help_text="[{at, xid, gpu, node}]")
    events = serializers.JSONField(help_text="[{pod, at, type, reason, message, count, source}]")
    volumes = serializers.JSONField(help_text="With phase, use, problem and lease as they were.")
    node_then = serializers.JSONField(allow_null=True)
    agent_then = serializers.JSONField(allow_null=True)
    troubles = serializers.JSONField(help_text="Problems of its nodes and GPUs.")
    story = serializers.JSONField(help_text="Berth's own events of the run.")
    namespace_deleted_at = serializers.CharField(allow_null=True)
    log = LastLineShape(
        many=True, allow_null=True, help_text="The last 200 lines; null: you may not read its log."
    )
    missing = MissingShape(many=True, help_text="What nobody reported.")
    notes = PostMortemNoteShape(many=True)
    alike = AlikeShape(many=True, help_text="Runs of two days around it, and what they share with it.")


class PostMortemFilter(django_filters.FilterSet):  # type: ignore[misc]
    workspace = django_filters.UUIDFilter(method="of_kind")
    job = django_filters.UUIDFilter(method="of_kind")
    node = django_filters.CharFilter()
    tenant = django_filters.CharFilter(field_name="tenant__slug")
    owner = django_filters.CharFilter(field_name="owner__username")
    cluster = django_filters.CharFilter(field_name="cluster__slug")
    verdict = django_filters.CharFilter()
    happened = django_filters.MultipleChoiceFilter(choices=PostMortem.Happened.choices)

    def of_kind(self, rows: QuerySet[PostMortem], name: str, value: UUID) -> QuerySet[PostMortem]:
        return rows.filter(holder_kind=Claim.Holder(name), holder_id=value)


class PostMortemsView(ListView):
    serializer_class = PostMortemShape
    queryset = PostMortem.objects.none()
    filterset_class = PostMortemFilter
    search_fields = ("name", "node", "owner__username")
    keyset = ("-ended_at", "-id")

    def get_queryset(self) -> QuerySet[PostMortem]:
        rows = access.visible(actor_of(self.request)).select_related(*access.RELATED)
        return rows.defer("lines")

    @extend_schema(
        summary=gettext_noop("Post-mortems of runs that failed, were evicted or interrupted"),
        responses=answers({200: PostMortemShape(many=True)}),
    )
    def get(self, request: Request) -> Response:
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(briefs(rows or []))


class PostMortemView(APIView):
    @extend_schema(
        summary=gettext_noop("One post-mortem"), responses=answers({200: WholePostMortemShape}, 404)
    )
    def get(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        return Response(whole(access.get(actor, id), actor))


class PostMortemNotesView(APIView):
    @extend_schema(
        summary=gettext_noop("Add a note to a post-mortem"),
        request=PostMortemNoteBody,
        responses=answers({201: PostMortemNoteShape}, 403, 404, 409, 422),
    )
    def post(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        record = access.get(actor, id)
        access.require_note(actor, record)
        note = notes.add(actor, record, checked(PostMortemNoteBody, request)["text"])
        return Response(note_json(note), status=201)
