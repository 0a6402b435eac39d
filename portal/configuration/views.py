"""The kinds over REST, one object at a time: what can be read of each is elsewhere, and POST is added to that list."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.views import ListView, checked
from portal.configuration import applying
from portal.configuration.difference import Key
from portal.configuration.kind import Kind


class KindView(APIView):
    """One object of a kind, for admins."""

    kind: Kind
    write_scope = Scope.ADMIN

    @property
    def object_key(self) -> Key:
        """The parts of the address, in the order of the key. A part that the address lacks is None."""
        parts = tuple(self.kwargs.values())
        return parts + (None,) * (len(self.kind.key) - len(parts))

    def get(self, request: Request, **_key: str) -> Response:
        obj = applying.get(actor_of(request), self.kind, self.object_key)
        return Response(self.kind.read(obj), headers={"Cache-Control": "no-store"})

    def patch(self, request: Request, **_key: str) -> Response:
        body = checked(self.kind.changes_shape, request)
        return Response(self.kind.read(applying.change(actor_of(request), self.kind, self.object_key, body)))

    def delete(self, request: Request, **_key: str) -> Response:
        applying.delete(actor_of(request), self.kind, self.object_key)
        return Response(status=204)


class Creates(APIView):
    kind: Kind
    write_scope = Scope.ADMIN

    def post(self, request: Request) -> Response:
        obj = applying.create(actor_of(request), self.kind, checked(self.kind.shape, request))
        return Response(self.kind.read(obj), status=201)


class KindList(ListView):
    """Settings of all objects of a kind that no other list shows, for admins. They belong to tenants."""

    kind: Kind
    write_scope = Scope.ADMIN
    keyset = ("id", "id")
    search_fields = ("tenant__slug", "tenant__name")

    def get_queryset(self) -> QuerySet[Any]:
        return self.kind.rows()

    def get(self, request: Request) -> Response:
        actor_of(request).require_admin()
        return self.page()


def one(kind: Kind, named: str = "") -> Any:
    """Return the view of one object of the kind. `named` tells its operations from those of another address."""
    name = named or kind.name
    documented = extend_schema_view(
        get=extend_schema(
            operation_id=f"{name}_retrieve",
            summary=gettext_noop("Settings of one (admins)"),
            responses=answers({200: kind.shape}, 404),
        ),
        patch=extend_schema(
            operation_id=f"{name}_partial_update",
            summary=gettext_noop("Change settings (admins)"),
            request=kind.changes_shape,
            responses=answers({200: kind.shape}, 404, 409, 422),
        ),
        delete=extend_schema(
            operation_id=f"{name}_destroy",
            summary=gettext_noop("Delete, if nothing uses it (admins)"),
            request=None,
            responses=answers({204: None}, 404, 409),
        ),
    )
    made: Any = type(f"{kind.model.__name__}View", (KindView,), {"kind": kind})
    return documented(made).as_view()


def many(kind: Kind, readers: type[APIView] | None = None) -> Any:
    """Return the view of a list to which POST adds an object; without readers, a list of settings for admins."""
    summary = gettext_noop("Create one (admins)")
    post = extend_schema(summary=summary, request=kind.shape, responses=answers({201: kind.shape}, 409, 422))
    bases = (Creates, readers or _listed(kind))
    made: Any = type(f"{bases[1].__name__}WithPost", bases, {"kind": kind})
    return extend_schema_view(post=post)(made).as_view()


def _listed(kind: Kind) -> type[KindList]:
    get = extend_schema(
        summary=gettext_noop("Settings of all (admins)"), responses=answers({200: kind.shape(many=True)}, 403)
    )
    rows = kind.model._default_manager.none()  # what the schema asks for
    own = {"kind": kind, "serializer_class": kind.shape, "queryset": rows}
    found: type[KindList] = extend_schema_view(get=get)(type(f"{kind.model.__name__}List", (KindList,), own))
    return found
