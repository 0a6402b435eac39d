"""Admin page of the audit trail: for search only, admins cannot write here either."""

from __future__ import annotations

import json

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from accounts.admin.recorded import ReadOnlyPage
from accounts.models import AuditEntry


@admin.register(AuditEntry)
class AuditEntryPage(ReadOnlyPage[AuditEntry]):
    purpose = _(
        "Every change and every refusal: who, what, when, from where. Entries are never changed. They are deleted by "
        "the month, when they are older than BERTH_TRAIL_MONTHS."
    )
    fields = (
        "at", "actor_name", "action", "outcome", "tenant", "what", "target_kind", "target_id", "address", "told",
    )  # fmt: skip
    list_display = ("at", "actor_name", "action", "what", "outcome", "tenant", "address")
    list_filter = ("outcome", "tenant")
    search_fields = ("actor_name", "action", "=target_id")
    list_select_related = ("tenant",)
    date_hierarchy = "at"

    @admin.display(description=_("what"))
    def what(self, entry: AuditEntry) -> str:
        """Return the target's name, if the entry kept one."""
        return str(entry.data.get("name") or entry.data.get("username") or entry.data.get("slug") or "")

    @admin.display(description=_("details"))
    def told(self, entry: AuditEntry) -> SafeString:
        return format_html("<pre>{}</pre>", json.dumps(entry.data, indent=2, ensure_ascii=False))

    def get_readonly_fields(self, request: HttpRequest, obj: AuditEntry | None = None) -> tuple[str, ...]:
        return self.fields
