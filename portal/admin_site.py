from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _


class BerthAdminSite(AdminSite):
    site_header = _("Berth administration")
    site_title = _("Berth")
    index_title = _("Overview")

    def login(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        """One way to sign in for everybody: the one that slows down who guesses passwords."""
        if request.user.is_authenticated:
            raise PermissionDenied
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"))

    def password_change(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """One way to change one's own for everybody: the one that is slowed down and on record."""
        return redirect("password")

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """What needs somebody's attention, above everything that can be set."""
        from portal import attention  # models are there once the site is used

        return super().index(request, {**attention.overview(), **(extra_context or {})})
