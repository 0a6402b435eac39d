"""Admin page for drift: what was found in the clusters, and the actions on a finding."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from accounts.admin.recorded import ReadOnlyPage
from accounts.rest.actors import actor_of
from monitoring.admin.filters import OpenFirst
from monitoring.drift import actions as drift_actions
from monitoring.drift import looks, words
from monitoring.models import Finding, Look
from monitoring.models.drift import FINDING_IS_OPEN

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class FindingAction(Previewed[Finding]):
    """Admin action on findings: why it is refused for some, what it does, and its use case."""

    def __init__(
        self,
        name: str,
        short_description: StrOrPromise,
        title: StrOrPromise,
        button: StrOrPromise,
        *,
        why_not: Callable[[Finding], str],
        what: Callable[[Finding], tuple[str, ...]],
        do: Callable[[Actor, Finding], bool],
        is_grave: bool = False,
        tick: StrOrPromise = "",
    ) -> None:
        self.name, self.short_description, self.title, self.button = name, short_description, title, button
        self.is_grave, self.tick = is_grave, tick
        self.why_not, self._what, self._action = why_not, what, do
        super().__init__()

    def effect_on(self, row: Finding) -> Effect:
        whom = f"{row} · {words.whose(row)}"
        if row.resolved_at:
            return Effect(str(row.pk), whom, refused=_("It has ended."))
        if why := self.why_not(row):
            return Effect(str(row.pk), whom, refused=why)
        return Effect(str(row.pk), whom, self._what(row), about=row.digest)

    def apply(self, actor: Actor, row: Finding) -> bool:
        return self._action(actor, row)

    def done(self, count: int) -> str:
        return ngettext("Done for %(count)d.", "Done for %(count)d.", count) % {"count": count}


ACTIONS = (
    FindingAction(
        "accept",
        gettext_lazy("Adopt: accept as it is …"),
        gettext_lazy("Accept what was changed"),
        gettext_lazy("Accept it as it is"),
        why_not=words.why_not_accept,
        what=words.accepted,
        do=partial(drift_actions.do, "accept"),
    ),
    FindingAction(
        "recreate",
        gettext_lazy("Recreate as it should be …"),
        gettext_lazy("Recreate missing objects"),
        gettext_lazy("Recreate"),
        why_not=words.why_not_recreate,
        what=words.recreated,
        do=partial(drift_actions.do, "recreate"),
    ),
    FindingAction(
        "delete_object",
        gettext_lazy("Delete, keep data …"),
        gettext_lazy("Delete from the cluster"),
        gettext_lazy("Delete, keep data"),
        why_not=words.why_not_delete,
        what=partial(words.deleted, with_data=False),
        do=partial(drift_actions.do, "delete"),
        is_grave=True,
    ),
    FindingAction(
        "delete_data",
        gettext_lazy("Delete with the data …"),
        gettext_lazy("Delete from the cluster, with the data"),
        gettext_lazy("Delete with the data"),
        why_not=partial(words.why_not_delete, with_data=True),
        what=partial(words.deleted, with_data=True),
        do=partial(drift_actions.do, "delete_data"),
        is_grave=True,
        tick=gettext_lazy("Nobody needs this data. It cannot be recovered."),
    ),
)


class StateFilter(OpenFirst):
    is_open = FINDING_IS_OPEN
    others: ClassVar = {
        "accepted": (gettext_lazy("accepted"), Q(accepted_at__isnull=False, resolved_at=None)),
        "over": (gettext_lazy("over"), Q(resolved_at__isnull=False)),
        "new": (gettext_lazy("just seen"), Q(confirmed_at=None, resolved_at=None)),
    }


@admin.register(Finding)
class FindingPage(ReadOnlyPage[Finding]):
    purpose = gettext_lazy(
        "Differences between a cluster and Berth's records that Berth does not repair. Every cluster is "
        "checked every five minutes; nothing is removed or changed automatically."
    )
    list_display = ("object", "what", "whose", "in_short", "cluster", "first_seen_at")
    list_filter = (StateFilter, "what", "kind", "cluster")
    search_fields = (
        "name",
        "namespace",
        "tenant_slug",
        "=workspace_uuid",
        "workspace__name",
        "=job__id",
        "job__name",
    )
    date_hierarchy = "first_seen_at"
    actions = ACTIONS
    change_list_template = "admin/monitoring/finding/change_list.html"
    fields = (
        "told", "differs", "by_hand", "whose", "cluster", "what", "kind", "namespace", "name", "uid",
        "first_seen_at", "last_seen", "accepted", "resolved_at",
    )  # fmt: skip
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Finding]:
        rows: QuerySet[Finding] = super().get_queryset(request)
        return rows.select_related(
            "cluster", "workspace__owner", "workspace__tenant", "job__owner", "job__tenant", "accepted_by"
        )

    def idle_fields(self, obj: Finding) -> dict[str, object]:
        return {
            "differs": not obj.data.get("fields"),
            "by_hand": not words.advice(obj),
            "accepted": not obj.accepted_at,
            "resolved_at": not obj.resolved_at,
            "uid": not obj.uid,
        }

    def public_address(self, obj: Finding) -> str:
        if obj.job is not None and obj.job.deleted_at is None:
            return reverse("job", args=[obj.job_id])
        alive = obj.workspace is not None and obj.workspace.deleted_at is None
        return reverse("workspace", args=[obj.workspace_id]) if alive else ""

    def buttons(self, request: HttpRequest, obj: Finding) -> list[tuple[str, str]]:
        if obj.resolved_at:
            return []
        return [action.as_button for action in ACTIONS if not action.why_not(obj)]

    # --- look now

    def get_urls(self) -> list[URLPattern]:
        look = self.admin_site.admin_view(require_POST(self.look_view))
        return [path("look/", look, name="monitoring_finding_look"), *super().get_urls()]

    def look_view(self, request: HttpRequest) -> HttpResponse:
        """Ask a worker to look at every cluster. A new finding is shown a minute later, if it lasts."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        looks.want_all(actor_of(request))
        text = _(
            "The clusters are being checked. A new difference is shown after one minute: reload this page then."
        )
        self.message_user(request, text, messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:monitoring_finding_changelist"))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        rows = Look.objects.select_related("cluster").order_by("cluster__slug")
        fresh = Finding.objects.filter(confirmed_at__isnull=True, resolved_at__isnull=True).count()
        return super().changelist_view(request, {"looks": rows, "fresh": fresh, **(extra_context or {})})

    # --- columns

    @admin.display(description=gettext_lazy("object"), ordering="name")
    def object(self, finding: Finding) -> str:
        return str(finding)

    @admin.display(description=gettext_lazy("of"))
    def whose(self, finding: Finding) -> str:
        return words.whose(finding)

    @admin.display(description=gettext_lazy("what differs"))
    def differs(self, finding: Finding) -> SafeString | str:
        lines = words.what_differs(finding)
        return format_html_join("", "<div>{}</div>", ((line,) for line in lines)) or "–"

    @admin.display(description=gettext_lazy("what differs"))
    def in_short(self, finding: Finding) -> str:
        return words.in_short(finding)

    @admin.display(description=gettext_lazy("finding"))
    def told(self, finding: Finding) -> str:
        return words.sentence(finding)

    @admin.display(description=gettext_lazy("by hand"))
    def by_hand(self, finding: Finding) -> SafeString | str:
        return format_html("<code>{}</code>", command) if (command := words.advice(finding)) else "–"

    @admin.display(description=gettext_lazy("last seen"))
    def last_seen(self, finding: Finding) -> str:
        """Return the time of the last look for an open finding: it was there at that look."""
        looks = Look.objects.filter(cluster=finding.cluster_id).values_list("ended_at", flat=True)
        seen_at = finding.last_seen_at if finding.resolved_at else looks.first()
        return date_format(localtime(seen_at), "DATETIME_FORMAT") if seen_at else "–"

    @admin.display(description=gettext_lazy("accepted by"))
    def accepted(self, finding: Finding) -> str:
        return str(finding.accepted_by or "–")
