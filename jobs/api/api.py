"""REST API of jobs. Views are thin: each rule is in the use case that a view calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.utils.translation import gettext_noop
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access import Actor
from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.csv import OffersCSV
from accounts.rest.schema import answers
from accounts.rest.shapes import NoBody
from accounts.rest.views import ListView, Query, checked
from jobs import access, sweeps
from jobs.cluster.shown import manifests_of
from jobs.duplicate import duplicate
from jobs.models import Event, Job, Phase
from jobs.pipeline.graph import as_json, graph_of
from jobs.progress import reporting
from jobs.runs import lifecycle
from jobs.submit import submit
from workloads import copies
from workloads.models import ORDERINGS, SEARCHED

from . import table
from .representation import event_json, job_json, jobs_json, part_json, with_related
from .serializers import (
    DuplicateBody,
    JobBody,
    JobEventShape,
    JobShape,
    KeepBody,
    MetricsBody,
    PartsShape,
    PipelineShape,
    ReportedShape,
    WorkspaceJobBody,
    spec_from,
    spec_of,
)


class OneJobView(APIView):
    """View of the job in the address. A job that the caller may not see is a 404."""

    write_scope = Scope.JOBS

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.actor = actor_of(request)
        self.job = access.get(self.actor, kwargs["id"])

    def answer(self, changed: bool = False) -> Response:
        """Return the job as it is now: 202 if something will happen to it, else 200."""
        job = access.get(self.actor, self.job.pk)
        return Response(job_json(job, self.actor), status=202 if changed else 200)


class JobFilter(django_filters.FilterSet):  # type: ignore[misc]
    tenant = django_filters.CharFilter(field_name="tenant__slug")
    owner = django_filters.CharFilter(field_name="owner__username")
    pool = django_filters.CharFilter(field_name="pool__slug")
    phase = django_filters.MultipleChoiceFilter(choices=Phase.choices)
    name = django_filters.CharFilter()
    image = django_filters.CharFilter(field_name="image__slug")


class JobsView(ListView):
    write_scope = Scope.JOBS
    is_launch = True
    serializer_class = JobShape
    queryset = Job.objects.none()
    filterset_class = JobFilter
    search_fields = SEARCHED
    orderings = ORDERINGS

    def get_queryset(self) -> QuerySet[Job]:
        return with_related(access.visible(actor_of(self.request))).filter(deleted_at__isnull=True)

    @extend_schema(
        summary=gettext_noop("Jobs that you can see"), responses=answers({200: JobShape(many=True)})
    )
    def get(self, request: Request) -> Response:
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(jobs_json(rows or [], actor_of(request)))

    @extend_schema(
        summary=gettext_noop("Submit a job"),
        request=JobBody,
        responses=answers({201: JobShape}, 404, 409, 422, 429),
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        job = submit(actor, spec_of(checked(JobBody, request)))
        return Response(job_json(access.get(actor, job.pk), actor), status=201)


class JobView(OneJobView):
    @extend_schema(summary=gettext_noop("One job"), responses=answers({200: JobShape}, 404))
    def get(self, request: Request, id: UUID) -> Response:
        return Response(job_json(self.job, self.actor))

    @extend_schema(
        summary=gettext_noop("Cancel a job and delete it"),
        responses=answers({202: JobShape, 200: JobShape}, 404, 409),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        return self.answer(lifecycle.delete(self.actor, self.job))


class JobActionView(OneJobView):
    """Cancel or retry: 202 if something will happen, 200 if nothing has to change."""

    use_case: Callable[[Actor, Job], bool]

    @extend_schema(request=NoBody, responses=answers({202: JobShape, 200: JobShape}, 404, 409, 422, 429))
    def post(self, request: Request, id: UUID) -> Response:
        checked(NoBody, request)
        return self.answer(type(self).use_case(self.actor, self.job))


@extend_schema(summary=gettext_noop("Cancel a job; what it wrote stays"))
class CancelView(JobActionView):
    use_case = staticmethod(lifecycle.cancel)


@extend_schema(summary=gettext_noop("Let all parts of a job that is over run again"))
class RetryView(JobActionView):
    use_case = staticmethod(lifecycle.retry)


@extend_schema(summary=gettext_noop("Let the parts run again that did not succeed"))
class RetryFailedView(JobActionView):
    use_case = staticmethod(lifecycle.retry_failed)


class DuplicateView(OneJobView):
    is_launch = True

    @extend_schema(
        summary=gettext_noop("Submit another with the same settings"),
        request=DuplicateBody,
        responses=answers({202: JobShape}, 404, 409, 422, 429),
    )
    def post(self, request: Request, id: UUID) -> Response:
        job = duplicate(self.actor, self.job, **checked(DuplicateBody, request))
        return Response(job_json(access.get(self.actor, job.pk), self.actor), status=202)


class JobOfWorkspaceView(APIView):
    """A workspace's program as a job: with its image, size, volumes and environment."""

    write_scope = Scope.JOBS
    is_launch = True

    @extend_schema(
        summary=gettext_noop("Submit a job with the settings of a workspace"),
        request=WorkspaceJobBody,
        responses=answers({201: JobShape}, 404, 409, 422, 429),
    )
    def post(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        source = copies.find("workspace", actor, id)
        job = submit(actor, spec_from(source, checked(WorkspaceJobBody, request)))
        return Response(job_json(access.get(actor, job.pk), actor), status=201)


class StopRestView(OneJobView):
    @extend_schema(
        summary=gettext_noop("End the parts of a job that are not over, and keep some"),
        request=KeepBody,
        responses=answers({202: JobShape, 200: JobShape}, 404, 409),
    )
    def post(self, request: Request, id: UUID) -> Response:
        return self.answer(lifecycle.stop_rest(self.actor, self.job, **checked(KeepBody, request)))


class PartsQuery(Query):
    sort = serializers.CharField(default="index", max_length=100)

    def validate_sort(self, sort: str) -> str:
        try:
            sweeps.in_order([], sort)
        except ValueError as error:
            raise serializers.ValidationError([str(error)]) from None
        return sort


class PartsView(OneJobView, OffersCSV):
    """Parts of a job, all in one answer: a job has at most 1000."""

    @extend_schema(
        summary=gettext_noop("Parts of a job, with their parameters and newest values"),
        parameters=[
            OpenApiParameter(
                "sort",
                str,
                description="index, phase, attempts, parameters.NAME or metrics.NAME; `-` before it turns it round.",
            ),
            OpenApiParameter("format", str, enum=["json", "csv"]),
        ],
        responses=answers(
            {(200, "application/json"): PartsShape, (200, "text/csv"): OpenApiTypes.STR},  # type: ignore[dict-item]
            404,
        ),
    )
    def get(self, request: Request, id: UUID) -> HttpResponseBase:
        parts = sweeps.in_order(self.job.parts.all(), PartsQuery.of(request)["sort"])
        if self.is_csv:
            return self.as_csv(f"job-{self.job.pk}.csv", table.csv_parts(parts))
        return Response({"results": [part_json(part) for part in parts], "next": None})


class EventQuery(Query):
    after = serializers.IntegerField(default=0, min_value=0, max_value=2**31 - 1)


class JobEventsView(ListView):
    write_scope = Scope.JOBS
    serializer_class = JobEventShape
    queryset = Event.objects.none()
    filter_backends = (DjangoFilterBackend,)
    filterset_fields = ("run", "level", "code")
    keyset = ("number", "id")

    @extend_schema(
        summary=gettext_noop("What happened to a job"),
        parameters=[OpenApiParameter("after", int, description="Only events with a higher id.")],
        responses=answers({200: JobEventShape(many=True)}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        job = access.get(actor_of(request), id)
        events = job.events.filter(number__gt=EventQuery.of(request)["after"])
        page = self.paginate_queryset(self.filter_queryset(events))
        return self.get_paginated_response([event_json(event) for event in page or []])


class PartQuery(Query):
    index = serializers.IntegerField(default=0, min_value=0, max_value=2**31 - 1)


class MetricsView(OneJobView):
    @extend_schema(
        summary=gettext_noop("What a part of a job reported: progress, values, and series of them"),
        parameters=[OpenApiParameter("index", int, description="The part; 0 if left out.")],
        responses=answers({200: ReportedShape}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        return Response(reporting.reported(self.job, **PartQuery.of(request)))

    @extend_schema(
        summary=gettext_noop("Report progress and values of a part that runs"),
        description="The same as a line `berth: progress=0.4 loss=1.2` of its output.",
        request=MetricsBody,
        responses=answers({200: ReportedShape}, 404, 409, 422),
    )
    def post(self, request: Request, id: UUID) -> Response:
        body = checked(MetricsBody, request)
        reporting.report(self.actor, self.job, **body)
        return Response(reporting.reported(self.job, body["index"]))


class PipelineView(OneJobView):
    @extend_schema(
        summary=gettext_noop("Jobs that are connected with a job, and versions of datasets between them"),
        responses=answers({200: PipelineShape}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        return Response(as_json(graph_of(self.job, self.actor)))


class ManifestView(OneJobView):
    @extend_schema(
        summary=gettext_noop("What Berth asks of Kubernetes for a job"),
        description="The Job of its newest attempt, or of its first to come. Its Secret is left out.",
        responses=answers({200: OpenApiTypes.OBJECT}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        access.require_output(self.actor, self.job)
        return Response(manifests_of(self.job))
