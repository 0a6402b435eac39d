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
        """Redirect to the one sign-in page, which slows down guessing of passwords."""
        if request.user.is_authenticated:
            raise PermissionDenied
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"))

    def password_change(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirect to the one page for changing a password, which slows down guessing and records the change."""
        return redirect("password")

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """Show what needs attention above the list of models."""
        from portal import attention  # imported late: models are not loaded when the site is defined

        return super().index(request, {**attention.overview(), **(extra_context or {})})
