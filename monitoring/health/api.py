"""Actions on nodes over REST, for admins: the use cases of the admin's list."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.errors import Conflict, NotThere
from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.views import Query, checked
from clusters.models import Node
from monitoring.health import drain

LONGEST_NOTICE_MINUTES = 7 * 24 * 60
WHICH = OpenApiParameter(
    "cluster", str, description="Slug; needed if several clusters have a node of this name."
)


class WhichCluster(Query):
    cluster = serializers.CharField(required=False)


class CloseBody(StrictSerializer):
    why = serializers.CharField(
        max_length=drain.LONGEST_WHY,
        allow_blank=True,
        default="",
        help_text="Kept as an annotation of the node.",
    )


class OpenBody(StrictSerializer):
    """An empty body."""


class DrainBody(CloseBody):
    minutes = serializers.IntegerField(
        min_value=0, max_value=LONGEST_NOTICE_MINUTES, default=60, help_text="Notice to the people on it."
    )


class NodeChanged(serializers.Serializer[Any]):
    cluster = serializers.CharField()
    name = serializers.CharField()
    changed = serializers.BooleanField(help_text="False: it was so already.")


class NodeActionView(APIView):
    """A base of views: the address has the node's name, and the answer says whether anything changed."""

    write_scope = Scope.ADMIN
    asks_clusters = True

    def node(self, name: str) -> Node:
        actor_of(self.request).require_whole_person()
        nodes = Node.objects.filter(name=name).select_related("cluster")
        if cluster := WhichCluster.of(self.request).get("cluster"):
            nodes = nodes.filter(cluster__slug=cluster)
        found = list(nodes[:2])
        if not found:
            raise NotThere("not_found", _("There is no such node."), _("Look in the list of nodes."))
        if len(found) > 1:
            text = _("Several clusters have a node of this name.")
            raise Conflict("which_cluster", text, _("Add “?cluster=” with the cluster's slug."))
        return found[0]


def changed(node: Node, is_changed: bool) -> Response:
    return Response({"cluster": node.cluster.slug, "name": node.name, "changed": is_changed})


class CordonView(NodeActionView):
    @extend_schema(
        summary=gettext_noop("Close a node for new work (admins)"),
        parameters=[WHICH],
        request=CloseBody,
        responses=answers({200: NodeChanged}, 404, 409),
    )
    def post(self, request: Request, name: str) -> Response:
        body = checked(CloseBody, request)
        node = self.node(name)
        return changed(node, drain.cordon(actor_of(request), node, **body))


class UncordonView(NodeActionView):
    @extend_schema(
        summary=gettext_noop("Open a node again, and cancel its drain (admins)"),
        parameters=[WHICH],
        request=None,
        responses=answers({200: NodeChanged}, 404, 409),
    )
    def post(self, request: Request, name: str) -> Response:
        checked(OpenBody, request)
        node = self.node(name)
        return changed(node, drain.uncordon(actor_of(request), node))


class DrainView(NodeActionView):
    @extend_schema(
        summary=gettext_noop("Close a node, notify everybody on it, and stop their runs later (admins)"),
        parameters=[WHICH],
        request=DrainBody,
        responses=answers({200: NodeChanged}, 404, 409),
    )
    def post(self, request: Request, name: str) -> Response:
        body = checked(DrainBody, request)
        node = self.node(name)
        return changed(node, drain.drain(actor_of(request), node, **body))
