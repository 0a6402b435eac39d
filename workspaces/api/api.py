"""REST API of workspaces. Views are thin: each rule is in the use case that a view calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from django.utils.translation import gettext_noop
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access import Actor, tenant_by_slug
from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.shapes import NoBody
from accounts.rest.views import ListView, Query, checked
from storage.mounts import foreseen
from workloads.figures import moment
from workloads.images import catalogue
from workloads.models import ORDERINGS
from workloads.sizes.estimate import estimate
from workspaces import access
from workspaces.gateway.scripts import hand_out
from workspaces.launch.clone import clone
from workspaces.launch.launch import check, launch
from workspaces.models import SEARCHED, Desired, Event, Phase, Workspace
from workspaces.runs import changes, idleness, lifecycle, lifetime, sharing

from .representation import event_json, with_related, workspace_json, workspaces_json
from .serializers import (
    ChangeBody,
    CloneBody,
    EstimateBody,
    EstimateShape,
    EventShape,
    ExtendBody,
    ImageShape,
    JupyterShape,
    LaunchBody,
    WorkspaceShape,
    change_of,
    spec_of,
)

# Fields of the asked size, which an alternative replaces; and secrets, which are never sent back.
SIZE = {"flavor", "pool", "gpu", "gpus", "gpu_memory_mib", "cpu", "memory_mib"}
REPLACED_BY_ALTERNATIVES = SIZE | {"secret_env"}


def answer(actor: Actor, workspace_id: UUID, status: int = 200) -> Response:
    """Return the workspace as it is now."""
    workspace = access.get(actor, workspace_id)
    return Response(workspace_json(workspace, actor), status=status)


class OneWorkspaceView(APIView):
    """View of the workspace in the address. A workspace that the caller may not see is a 404."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.actor = actor_of(request)
        self.workspace = access.get(self.actor, kwargs["id"])

    def answer(self, changed: bool = False) -> Response:
        """Return the workspace as it is now: 202 if something will happen to it, else 200."""
        return answer(self.actor, self.workspace.pk, 202 if changed else 200)


class WorkspaceFilter(django_filters.FilterSet):  # type: ignore[misc]
    tenant = django_filters.CharFilter(field_name="tenant__slug")
    owner = django_filters.CharFilter(field_name="owner__username")
    pool = django_filters.CharFilter(field_name="pool__slug")
    phase = django_filters.MultipleChoiceFilter(choices=Phase.choices)
    name = django_filters.CharFilter()
    image = django_filters.CharFilter(field_name="image__slug")
    flavor = django_filters.CharFilter(field_name="flavor__slug")
    node = django_filters.CharFilter()
    desired = django_filters.MultipleChoiceFilter(choices=Desired.choices)
    shared_with_me = django_filters.BooleanFilter(method="filter_shared")

    def filter_shared(self, rows: QuerySet[Workspace], name: str, is_shared: bool) -> QuerySet[Workspace]:
        shared = Workspace.objects.filter(sharing.with_actor(actor_of(self.request)))
        return (
            rows.filter(pk__in=shared.values("pk")) if is_shared else rows.exclude(pk__in=shared.values("pk"))
        )


class WorkspacesView(ListView):
    write_scope = Scope.WORKSPACES
    is_launch = True
    serializer_class = WorkspaceShape
    queryset = Workspace.objects.none()
    filterset_class = WorkspaceFilter
    search_fields = SEARCHED
    orderings = ORDERINGS

    def get_queryset(self) -> QuerySet[Workspace]:
        return with_related(access.visible(actor_of(self.request))).filter(deleted_at__isnull=True)

    @extend_schema(
        summary=gettext_noop("Workspaces that you can see"),
        responses=answers({200: WorkspaceShape(many=True)}),
    )
    def get(self, request: Request) -> Response:
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(workspaces_json(rows or [], actor_of(request)))

    @extend_schema(
        summary=gettext_noop("Launch a workspace"),
        request=LaunchBody,
        responses=answers({201: WorkspaceShape}, 404, 409, 422, 429),
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        workspace = launch(actor, spec_of(checked(LaunchBody, request)))
        return Response(workspace_json(workspace, actor), status=201)


class WorkspaceView(OneWorkspaceView):
    write_scope = Scope.WORKSPACES

    @extend_schema(summary=gettext_noop("One workspace"), responses=answers({200: WorkspaceShape}, 404))
    def get(self, request: Request, id: UUID) -> Response:
        return Response(workspace_json(self.workspace, self.actor))

    @extend_schema(
        summary=gettext_noop("Change its name, size, lifetime, volumes, image, environment"),
        description=(
            "A size, volumes, image, environment, secrets or repository that are changed while it runs take effect at "
            "the next start: `pending_restart` names them, `next_size`, `next_volumes`, `next_image`, `next_env` and "
            "`next_repository` have the values. `volumes` and `env` replace the whole; `secret_env` sets those that it "
            "names and removes those with null. A lifetime that is changed counts from now. Where it waits, another "
            "size goes to the end of the queue, unless it asks for no more in the same pool, or is the size that it "
            "had before. All of it is changed, or nothing."
        ),
        request=ChangeBody,
        responses=answers({200: WorkspaceShape}, 404, 409, 422),
    )
    def patch(self, request: Request, id: UUID) -> Response:
        access.require_own(self.actor, self.workspace)
        changes.change(self.actor, self.workspace, change_of(checked(ChangeBody, request), self.workspace))
        return self.answer()

    @extend_schema(
        summary=gettext_noop("Delete a workspace"),
        parameters=[OpenApiParameter("delete_disk", bool, description="Its files too. They stay otherwise.")],
        responses=answers({202: WorkspaceShape, 200: WorkspaceShape}, 404, 409),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        delete_disk = DeleteQuery.of(request)["delete_disk"]
        return self.answer(lifecycle.delete(self.actor, self.workspace, delete_disk=delete_disk))


class DeleteQuery(Query):
    delete_disk = serializers.BooleanField(default=False)


class EventQuery(Query):
    after = serializers.IntegerField(default=0, min_value=0, max_value=2**31 - 1)


class ActionView(OneWorkspaceView):
    """Start, stop or restart: 202 if something will happen, 200 if nothing has to change."""

    write_scope = Scope.WORKSPACES
    use_case: Callable[[Actor, Workspace], bool]

    @extend_schema(
        request=NoBody, responses=answers({202: WorkspaceShape, 200: WorkspaceShape}, 404, 409, 422, 429)
    )
    def post(self, request: Request, id: UUID) -> Response:
        checked(NoBody, request)
        return self.answer(type(self).use_case(self.actor, self.workspace))


@extend_schema(summary=gettext_noop("Start a stopped or failed workspace"))
class StartView(ActionView):
    use_case = staticmethod(lifecycle.start)


@extend_schema(summary=gettext_noop("Stop a workspace; its files stay"))
class StopView(ActionView):
    use_case = staticmethod(lifecycle.stop)


@extend_schema(summary=gettext_noop("Restart a workspace on the same units"))
class RestartView(ActionView):
    use_case = staticmethod(lifecycle.restart)


class ExtendView(OneWorkspaceView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("Change the end of its lifetime"),
        description="200 when nothing ends it: there is no end to move.",
        request=ExtendBody,
        responses=answers({202: WorkspaceShape, 200: WorkspaceShape}, 404, 409, 422),
    )
    def post(self, request: Request, id: UUID) -> Response:
        access.require_manage(self.actor, self.workspace)
        return self.answer(lifetime.extend(self.actor, self.workspace, **checked(ExtendBody, request)))


class KeepAliveView(OneWorkspaceView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("Keep an idle workspace running"),
        description="It counts as used now, so its time until it is stopped for being idle begins anew. 200 when "
        "nothing was about to stop it.",
        request=NoBody,
        responses=answers({202: WorkspaceShape, 200: WorkspaceShape}, 404, 409),
    )
    def post(self, request: Request, id: UUID) -> Response:
        checked(NoBody, request)
        return self.answer(idleness.keep_alive(self.actor, self.workspace))


class JupyterView(OneWorkspaceView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("Address and token of Jupyter, for scripts of the owner"),
        description=(
            "`GET {url}api/kernels` with `Authorization: token …` answers. The token is new for every run. It ends "
            "with the run, with your right to the workspace, and with the API token that asked for it; then ask "
            "again. `expires_at`: when the run ends at the latest; null: no end is set."
        ),
        request=NoBody,
        responses=answers({201: JupyterShape}, 404, 409),
    )
    def post(self, request: Request, id: UUID) -> Response:
        checked(NoBody, request)
        url, token, end = hand_out(self.actor, self.workspace, request.get_host())
        answer = {"url": url, "token": token, "expires_at": moment(end)}
        return Response(answer, status=201, headers={"Cache-Control": "no-store"})


class CloneView(OneWorkspaceView):
    write_scope = Scope.WORKSPACES
    is_launch = True

    @extend_schema(
        summary=gettext_noop("Launch another with the same settings"),
        description=(
            "`files`: with a copy of its home and disk as they are now, for its owner and owners of the tenant; it "
            "starts once the copies are there. Of somebody else's workspace, environment and repository are left "
            "out: they are private."
        ),
        request=CloneBody,
        responses=answers({202: WorkspaceShape}, 404, 409, 422, 429),
    )
    def post(self, request: Request, id: UUID) -> Response:
        copy = clone(self.actor, self.workspace, **checked(CloneBody, request))
        return answer(self.actor, copy.pk, 202)


class EventsView(ListView):
    serializer_class = EventShape
    queryset = Event.objects.none()
    filter_backends = (DjangoFilterBackend,)
    filterset_fields = ("run", "step", "level", "code")
    keyset = ("number", "id")

    @extend_schema(
        summary=gettext_noop("The activity of a workspace, oldest first"),
        parameters=[OpenApiParameter("after", int, description="Only events with a larger id.")],
        responses=answers({200: EventShape(many=True)}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        workspace = access.get(actor_of(request), id)
        events = Event.objects.filter(workspace=workspace, number__gt=EventQuery.of(request)["after"])
        page = self.paginate_queryset(self.filter_queryset(events))
        return self.get_paginated_response([event_json(event) for event in page or []])


class ImagesView(ListView):
    serializer_class = ImageShape
    queryset = catalogue()
    filterset_fields = ("slug", "name")
    search_fields = ("slug", "name", "description", "version", "cuda_version", "frameworks")
    keyset = ("slug", "id")

    @extend_schema(
        summary=gettext_noop("Images for workspaces"), responses=answers({200: ImageShape(many=True)})
    )
    def get(self, request: Request) -> Response:
        return self.page()


class EstimateView(APIView):
    write_scope = Scope.READ

    @extend_schema(
        summary=gettext_noop("Check whether a launch would start now; saves nothing"),
        request=EstimateBody,
        responses=answers({200: EstimateShape}, 404, 422),
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        body = checked(EstimateBody, request)
        tenant, spec = tenant_by_slug(actor, body["tenant"]), spec_of(body)
        image, size = check(tenant, spec)
        forecast, others = estimate(
            tenant,
            actor.user,
            size,
            body.get("max_runtime_minutes"),
            needs=foreseen.needs(actor, tenant, size.pool.cluster, spec.volumes, [image.home]),
            is_bound=bool(spec.volumes),
            several=body["nodes"],
        )
        kept = {
            name: value for name, value in dict(request.data).items() if name not in REPLACED_BY_ALTERNATIVES
        }
        return Response({**forecast, "alternatives": [{**kept, **other.body} for other in others]})
