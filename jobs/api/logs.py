"""REST API of a job's output."""

from __future__ import annotations

from uuid import UUID

from django.http.response import HttpResponseBase
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from accounts.rest.schema import answers
from jobs import access
from workloads.logs import api as logs

from .api import OneJobView


class JobLogsView(OneJobView):
    content_negotiation_class = logs.WhateverAccepted

    @extend_schema(
        summary=gettext_noop("Lines that a job wrote, the oldest first"),
        parameters=logs.PARAMETERS,
        responses=answers({200: logs.LinesShape}, 404),
    )
    def get(self, request: Request, id: UUID) -> HttpResponseBase:
        access.require_output(self.actor, self.job)
        return logs.answer(request, self.job.pk, self.job.object_name)
