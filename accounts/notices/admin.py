"""Admin page of notices: who was notified of what, which mails failed, and an action to send them again."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from accounts.admin.recorded import ReadOnlyPage
from accounts.notices import outbox
from accounts.notices.models import Notice


class SendAgain(Previewed[Notice]):
    name = "send_again"
    short_description = gettext_lazy("Send the mail again …")
    title = gettext_lazy("Send mails again")
    button = gettext_lazy("Send again")

    def notes(self) -> list[str]:
        return [
            _("Outdated notices are not sent: nobody is notified of a workspace that is no longer ready.")
        ]

    def effect_on(self, row: Notice) -> Effect:
        if row.mail not in outbox.CAN_BE_SENT_AGAIN:
            refused = _("This notice has no mail that is waiting or failed.")
            return Effect(str(row.pk), str(row), refused=refused)
        what = [_("It is sent now, to the person's current address.")]
        if row.mail_error:
            what.append(_("The mail server said: %(error)s") % {"error": row.mail_error})
        return Effect(str(row.pk), str(row), tuple(what))

    def apply(self, actor: Actor, row: Notice) -> bool:
        return outbox.send_again(actor, row)

    def done(self, count: int) -> str:
        return ngettext("%(count)d mail is sent again.", "%(count)d mails are sent again.", count) % {
            "count": count
        }


@admin.register(Notice)
class NoticePage(ReadOnlyPage[Notice]):
    purpose = gettext_lazy(
        "Notices that Berth sent, and the status of their mails. Berth retries a failed mail for a day."
    )
    list_display = ("at", "user", "kind", "mail", "mail_attempts", "mail_error")
    list_filter = ("mail", "kind")
    list_select_related = ("user",)
    search_fields = ("user__username", "user__email", "mail_error")
    date_hierarchy = "at"
    fields = (
        "at", "user", "kind", "in_berth", "read_at",
        "mail", "mail_attempts", "mail_due_at", "mail_settled_at", "mail_error",
    )  # fmt: skip
    actions = (SendAgain(),)
