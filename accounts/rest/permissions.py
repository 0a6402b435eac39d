"""Scopes of tokens, by view: reading needs `read`, writing the view's scope. Sessions have every scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from accounts.models import Scope
from accounts.rest.actors import actor_of

if TYPE_CHECKING:
    from rest_framework.views import APIView  # which itself imports the permissions from the settings

WRITE_SCOPES = frozenset(Scope) - {Scope.READ}


class InScope(BasePermission):
    """Permission for signed-in callers, within their token's scopes.

    A view names its scope as `write_scope`; Scope.READ means that its POST changes nothing. Without
    `write_scope` any scope but `read` passes here, and the use case checks the exact one.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not request.user.is_authenticated:
            return False
        actor = actor_of(request)
        scope: Scope | None = getattr(view, "write_scope", None)
        if request.method in SAFE_METHODS:
            if scope is None or not actor.may(scope):
                actor.require(Scope.READ)
        elif scope is not None:
            actor.require(scope)
        elif not any(actor.may(write_scope) for write_scope in WRITE_SCOPES):
            actor.require(Scope.WORKSPACES)
        return True
