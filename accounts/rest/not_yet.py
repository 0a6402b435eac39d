"""Parts of the API contract that are not built: they answer 501, only to callers with the right to use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.access import Actor, role_in, tenant_by_slug
from accounts.errors import NotAllowed, NotYet
from accounts.models import Role, Scope
from accounts.rest.actors import actor_of

# Raises NotThere or NotAllowed if the actor may not use the object in the address.
Check = Callable[..., object]


@extend_schema(exclude=True)
class NotYetView(APIView):
    """A view that answers 501, after it checked sign-in, scope and tenant."""

    write_scope: Scope = Scope.WORKSPACES
    methods: tuple[str, ...] = ("GET",)
    check: Check | None = None

    @property
    def allowed_methods(self) -> list[str]:
        return [*self.methods, "OPTIONS"]

    def answer(self, request: Request, *args: Any, **kwargs: Any) -> NoReturn:
        method = "GET" if request.method == "HEAD" else request.method
        if method not in self.methods:
            self.http_method_not_allowed(request)
        actor = actor_of(request)
        if self.check is not None:
            self.check(actor, **kwargs)
        if isinstance(request.data, dict) and isinstance(request.data.get("tenant"), str):
            _require_place(actor, request.data["tenant"], writes=request.method not in SAFE_METHODS)
        raise NotYet(
            "not_yet",
            _("This feature is not available yet."),
            _("The changelog lists what is available. The rest comes with later releases."),
        )

    get = post = patch = put = delete = answer


def not_yet(
    *methods: str, write_scope: Scope = Scope.WORKSPACES, check: Check | None = None
) -> Callable[..., Any]:
    """Return a view for urlpatterns; `check(actor, **kwargs_of_the_address)` may raise NotThere or NotAllowed first."""
    return NotYetView.as_view(methods=methods, write_scope=write_scope, check=check)


def _require_place(actor: Actor, slug: str, *, writes: bool) -> None:
    tenant = tenant_by_slug(actor, slug)
    if writes and role_in(actor, tenant) == Role.VIEWER:
        raise NotAllowed(
            "viewers_only_look",
            _("You can view %(tenant)s, but not start anything in it.") % {"tenant": tenant.name},
            _("Ask one of its owners to make you a member."),
        )
