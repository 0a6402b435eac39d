"""What was told to whom, and which mail did not get through; to look at, and to try again."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from accounts import audit
from accounts.notices import outbox
from accounts.notices.models import Notice
from accounts.rest.actors import actor_of


@admin.register(Notice)
class NoticeAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("at", "user", "kind", "mail", "mail_attempts", "mail_due_at", "mail_error")
    list_filter = ("mail", "kind", "at")
    list_select_related = ("user",)
    search_fields = ("user__username", "user__email", "subject_id", "mail_error")
    date_hierarchy = "at"
    fields = (
        "at",
        "user",
        "kind",
        "subject",
        "subject_id",
        "in_berth",
        "read_at",
        "mail",
        "mail_attempts",
        "mail_due_at",
        "mail_settled_at",
        "mail_error",
    )
    show_full_result_count = False
    actions = ("send_again",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.action(description=_("Send the mail again that was given up or waits"), permissions=["view"])
    def send_again(self, request: HttpRequest, chosen: QuerySet[Notice]) -> None:
        count = outbox.send_again(chosen)
        audit.record(actor_of(request), "notices.send_again", data={"count": count})
        text = ngettext("%(count)d mail is sent again.", "%(count)d mails are sent again.", count)
        self.message_user(request, text % {"count": count})
