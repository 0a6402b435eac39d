"""Admin list of all service accounts. They are managed on the page of their tenant."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, Max, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy

from accounts.admin.recorded import ReadOnlyPage
from accounts.models import ServiceAccount
from accounts.service_accounts.answering import accounts


@admin.register(ServiceAccount)
class ServiceAccountPage(ReadOnlyPage[ServiceAccount]):
    purpose = gettext_lazy(
        "Accounts of tenants for automation. Owners and admins create, take over and delete them on the tenant's page."
    )
    fields = ("username", "service_of", "responsible", "date_joined")
    list_display = ("username", "service_of", "responsible", "does_work", "tokens_now", "last_used")
    list_filter = ("service_of",)
    search_fields = ("username", "responsible__username")
    list_select_related = ("service_of", "responsible")
    ordering = ("username",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ServiceAccount]:
        usable = Q(tokens__revoked_at=None, tokens__expires_at__gt=timezone.now())
        rows: QuerySet[ServiceAccount] = accounts(super().get_queryset(request))
        return rows.annotate(tokens_now=Count("tokens", filter=usable), last_used=Max("tokens__last_used_at"))

    def public_address(self, obj: ServiceAccount) -> str:
        return reverse("service-account", args=[obj.service_of.slug, obj.pk]) if obj.service_of else ""

    @admin.display(boolean=True, description=gettext_lazy("works"))
    def does_work(self, account: Any) -> bool:
        return bool(account.works)

    @admin.display(description=gettext_lazy("usable tokens"))
    def tokens_now(self, account: Any) -> int:
        return int(account.tokens_now)

    @admin.display(description=gettext_lazy("last used"))
    def last_used(self, account: Any) -> Any:
        return account.last_used
