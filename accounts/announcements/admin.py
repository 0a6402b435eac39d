"""Admin page of announcements and maintenance."""

from __future__ import annotations

from django.contrib import admin
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from accounts.admin.recorded import RecordedPage
from accounts.announcements import changing
from accounts.announcements.models import Announcement


class EndAnnouncements(Previewed[Announcement]):
    name = "end"
    short_description = gettext_lazy("End now …")
    title = gettext_lazy("End announcements")
    button = gettext_lazy("End now")

    def effect_on(self, row: Announcement) -> Effect:
        now = timezone.now()
        if row.shown_until and row.shown_until <= now:
            return Effect(str(row.pk), row.text, refused=_("It has ended already."))
        what = [_("It leaves all pages.")]
        if row.no_launches_from:
            what.append(_("Launches are open again, and waiting requests start."))
        return Effect(str(row.pk), row.text, tuple(what))

    def apply(self, actor: Actor, row: Announcement) -> bool:
        return changing.end(actor, row.pk)

    def done(self, count: int) -> str:
        return ngettext("%(count)d announcement has ended.", "%(count)d announcements have ended.", count) % {
            "count": count
        }


@admin.register(Announcement)
class AnnouncementPage(RecordedPage[Announcement]):
    purpose = gettext_lazy(
        "Sentences on every page for a time. With “no launches from” it is maintenance: from then until its end "
        "nothing new starts, except by admins."
    )
    list_display = ("text", "level", "shown_from", "shown_until", "no_launches_from", "is_shown")
    list_filter = ("level",)
    search_fields = ("text",)
    date_hierarchy = "shown_from"
    fields = ("text", "level", "shown_from", "shown_until", "no_launches_from")
    actions = (EndAnnouncements(),)

    def buttons(self, request: object, obj: Announcement) -> list[tuple[str, str]]:
        return (
            [EndAnnouncements().as_button] if not obj.shown_until or obj.shown_until > timezone.now() else []
        )

    @admin.display(boolean=True, description=gettext_lazy("shown now"))
    def is_shown(self, row: Announcement) -> bool:
        now = timezone.now()
        return row.shown_from <= now and (row.shown_until is None or row.shown_until > now)
