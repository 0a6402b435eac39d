"""Admin pages for alert routes and the messages that went by them. Routes are changed on their own pages, which owners
have too.
"""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from accounts.admin.recorded import ReadOnlyPage
from monitoring.alerts import routes, sending, words
from monitoring.models import Alert, AlertDelivery, AlertRoute


class SendTest(Previewed[AlertRoute]):
    name = "send_test"
    short_description = gettext_lazy("Send a test …")
    title = gettext_lazy("Send a test by alert routes")
    button = gettext_lazy("Send")

    def effect_on(self, row: AlertRoute) -> Effect:
        if row.way == AlertRoute.Way.HEARTBEAT:
            return Effect(str(row.pk), row.name, refused=_("A heartbeat has no test."))
        to = row.host or _("you")
        return Effect(str(row.pk), row.name, (_("A test goes to %(to)s.") % {"to": to},))

    def apply(self, actor: Actor, row: AlertRoute) -> bool:
        routes.test(actor, row)
        return True

    def done(self, count: int) -> str:
        return ngettext("%(count)d test is on its way.", "%(count)d tests are on their way.", count) % {
            "count": count
        }


class SendAgain(Previewed[AlertDelivery]):
    name = "send_again"
    short_description = gettext_lazy("Send again …")
    title = gettext_lazy("Send messages again")
    button = gettext_lazy("Send again")

    def effect_on(self, row: AlertDelivery) -> Effect:
        if row.state == AlertDelivery.State.SENT:
            return Effect(str(row.pk), str(row.route), refused=_("It is sent."))
        return Effect(str(row.pk), str(row.route), (_("It is sent at once."),))

    def apply(self, actor: Actor, row: AlertDelivery) -> bool:
        return sending.send_again(actor, row)

    def done(self, count: int) -> str:
        return ngettext("%(count)d message is sent again.", "%(count)d messages are sent again.", count) % {
            "count": count
        }


@admin.register(Alert)
class AlertPage(ReadOnlyPage[Alert]):
    purpose = gettext_lazy(
        "What was and is wrong, grouped. Alerts are acknowledged and silenced on their own page."
    )
    list_display = ("sentence", "severity", "state", "count", "since", "cluster", "tenant")
    list_filter = ("state", "severity", "cluster")
    list_select_related = ("cluster", "tenant")
    search_fields = ("code", "members__node", "members__name")
    date_hierarchy = "since"
    fields = ("sentence", "severity", "state", "count", "since", "last_at", "cluster", "tenant")
    readonly_fields = fields

    def public_address(self, obj: Alert) -> str:
        return reverse("alert", args=[obj.pk])

    @admin.display(description=gettext_lazy("alert"))
    def sentence(self, alert: Alert) -> str:
        return words.sentence(alert.code, alert.data)


@admin.register(AlertRoute)
class AlertRoutePage(ReadOnlyPage[AlertRoute]):
    purpose = gettext_lazy(
        "Ways by which alerts reach people and programs. Open one to change it. All admins get mail unless "
        "that route is disabled."
    )
    list_display = ("name", "way", "host", "least_severity", "tenant", "cluster", "pool", "is_enabled")
    list_filter = ("way", "is_enabled", "tenant")
    list_select_related = ("cluster", "pool", "tenant")
    search_fields = ("name", "host")
    actions = (SendTest(),)
    fields = (
        "name", "way", "host", "least_severity", "tenant", "cluster", "pool", "escalates_after_minutes",
        "every_minutes", "is_enabled", "may_reach_inside", "created_by", "created_at", "last_beat_at", "beat_error",
    )  # fmt: skip
    readonly_fields = fields

    def public_address(self, obj: AlertRoute) -> str:
        return reverse("alert-route", args=[obj.pk])

    def buttons(self, request: HttpRequest, obj: AlertRoute) -> list[tuple[str, str]]:
        return [] if obj.way == AlertRoute.Way.HEARTBEAT else [SendTest().as_button]


@admin.register(AlertDelivery)
class AlertDeliveryPage(ReadOnlyPage[AlertDelivery]):
    purpose = gettext_lazy("Messages about alerts: who was told what, when, and what the receiver answered.")
    list_display = ("route", "recipient", "occasion", "state", "attempts", "status_code", "error", "sent_at")
    list_filter = ("state", "occasion", "route")
    list_select_related = ("route", "recipient", "alert")
    search_fields = ("error", "route__name")
    date_hierarchy = "created_at"
    actions = (SendAgain(),)
    fields = (
        "alert", "route", "recipient", "occasion", "batch", "state", "attempts", "created_at", "due_at", "status_code",
        "error", "sent_at",
    )  # fmt: skip
    readonly_fields = fields

    def buttons(self, request: HttpRequest, obj: AlertDelivery) -> list[tuple[str, str]]:
        return [] if obj.state == AlertDelivery.State.SENT else [SendAgain().as_button]
