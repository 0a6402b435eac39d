"""Claims: what runs and waits, for whom and why. The only action ends a claim whose pod nobody saw end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from accounts.admin.recorded import ReadOnlyPage
from quotas import admission, reasons
from quotas.holders import names_of, page_of
from quotas.models import Claim
from quotas.queries import place_in_queue
from quotas.scheduling import as_gpus
from quotas.when import forecast_in_words

# The overview counts these claims and links to their list.
NEVER = Q(state=Claim.State.WAITING, reason_code__in=reasons.NEVER)
ASKED_BACK = Q(state=Claim.State.ADMITTED, reclaim_at__isnull=False)
# With it Kubernetes detaches the volumes of a node that is off.
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
LOST = Q(state=Claim.State.ADMITTED, end_unproven_since__isnull=False)


def nodes_of(claim: Claim) -> str:
    """Return the names of a claim's nodes, each once."""
    return _(", ").join(dict.fromkeys(claim.nodes or [claim.node]))


def may_be_confirmed(claim: Claim) -> bool:
    return claim.state == Claim.State.ADMITTED and claim.end_unproven_since is not None


class ConfirmEnd(Previewed[Claim]):
    name = "confirm_end"
    short_description = gettext_lazy("Confirm that its pod has ended …")
    title = gettext_lazy("Confirm that pods have ended")
    button = gettext_lazy("I checked: they have ended")
    is_grave = True

    def notes(self) -> list[str]:
        return [
            _(
                "Check the node first. If the process is still there, two people get the same GPU. Confirm "
                "only when it is gone, or the node is off."
            ),
            _(
                "A node that is off for good keeps its volumes attached, and who needs them waits. Once you are sure "
                "that it is off, taint it: kubectl taint nodes %(node)s %(taint)s. A node that was not off would write "
                "beside the next one, and the files would be lost."
            )
            % {"node": "NAME", "taint": OUT_OF_SERVICE},
        ]

    def effects(self, actor: Actor, rows: Sequence[Claim]) -> list[Effect]:
        names = names_of(rows)
        return [self._effect(claim, names.get(claim.holder_id, "")) for claim in rows]

    def _effect(self, claim: Claim, name: str) -> Effect:
        whom = _("%(name)s of %(user)s in %(tenant)s") % {
            "name": name or claim.get_holder_kind_display(), "user": claim.user.username, "tenant": claim.tenant,
        }  # fmt: skip
        if not may_be_confirmed(claim):
            return Effect(
                str(claim.pk), whom, refused=_("Its pod still exists: stop its workspace, or cancel its job.")
            )
        since = date_format(claim.end_unproven_since or claim.created_at, "DATETIME_FORMAT")
        gpus = as_gpus(claim.all_units, claim.pool.units_per_gpu)
        return Effect(
            str(claim.pk),
            whom,
            (
                _("Its pod disappeared from %(node)s on %(since)s.")
                % {"node": nodes_of(claim), "since": since},
                _("%(gpus)s GPUs of %(pool)s become free for waiting requests.")
                % {"gpus": gpus, "pool": claim.pool}
                if claim.units
                else _("Its CPU and memory in %(pool)s become free for waiting requests.")
                % {"pool": claim.pool},
            ),
        )

    def apply(self, actor: Actor, row: Claim) -> bool:
        return admission.confirm_end(actor, row)

    def done(self, count: int) -> str:
        return ngettext("%(count)d claim was ended.", "%(count)d claims were ended.", count) % {
            "count": count
        }


class QueueFilter(admin.SimpleListFilter):
    title = gettext_lazy("queue")
    parameter_name = "queue"

    def lookups(self, request: HttpRequest, page: object) -> list[tuple[str, str]]:
        return [("never", _("cannot start")), ("asked_back", _("its GPUs are being reclaimed"))]

    def queryset(self, request: HttpRequest, rows: Any) -> Any:
        chosen = {"never": NEVER, "asked_back": ASKED_BACK}
        return rows.filter(chosen.get(self.value() or "", Q()))


class LostFilter(admin.SimpleListFilter):
    title = gettext_lazy("end")
    parameter_name = "lost"

    def lookups(self, request: HttpRequest, page: object) -> list[tuple[str, str]]:
        return [("yes", _("not confirmed"))]

    def queryset(self, request: HttpRequest, rows: Any) -> Any:
        if self.value() == "yes":
            return rows.filter(LOST)
        return rows


def only_waiting(request: HttpRequest) -> bool:
    return request.GET.get("state__exact") == Claim.State.WAITING


@admin.register(Claim)
class ClaimPage(ReadOnlyPage[Claim]):
    purpose = gettext_lazy(
        "What each workspace and job requested from a pool: waiting (and why), running (and where), and past."
    )
    list_display = (
        "what",
        "whose",
        "pool",
        "gpus",
        "state",
        "queue_place",
        "nodes_chosen",
        "why",
        "until",
        "created_at",
    )
    list_filter = ("state", QueueFilter, LostFilter, "pool", "tenant")
    list_select_related = ("tenant", "user", "pool")
    search_fields = ("=id", "=holder_id", "nodes", "user__username", "tenant__slug")
    date_hierarchy = "created_at"
    ordering = ("-created_at",)
    actions = (ConfirmEnd(),)
    fields = (
        "what", "tenant", "user", "pool", "gpus", "cpu_millicores", "memory_mib", "state", "queue_place", "why",
        "until", "nodes_chosen", "priority", "attempt", "created_at", "admitted_at", "released_at",
        "end_unproven_since",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(ahead=place_in_queue())

    def get_list_display(self, request: HttpRequest) -> Any:
        """Hide state and node in the list of waiting claims: they have no node, and the reasons get more room."""
        if only_waiting(request):
            return [column for column in self.list_display if column not in ("state", "nodes_chosen")]
        return self.list_display

    def get_ordering(self, request: HttpRequest) -> Any:
        """Order waiting claims as they are to start."""
        return ("pool__slug", "position", "place") if only_waiting(request) else super().get_ordering(request)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        found = super().get_changelist_instance(request)
        names = names_of(found.result_list)
        for claim in found.result_list:
            claim.name = names.get(claim.holder_id, "")
        return found

    def public_address(self, obj: Claim) -> str:
        return page_of(obj)

    def buttons(self, request: HttpRequest, obj: Claim) -> list[tuple[str, str]]:
        return [("confirm_end", _("Confirm that its pod has ended …"))] if may_be_confirmed(obj) else []

    @admin.display(description=gettext_lazy("what"))
    def what(self, claim: Any) -> str:
        name = claim.name if hasattr(claim, "name") else names_of([claim]).get(claim.holder_id)
        return name or str(claim.get_holder_kind_display())

    @admin.display(description=gettext_lazy("whose"), ordering="user__username")
    def whose(self, claim: Claim) -> str:
        return _("%(user)s in %(tenant)s") % {"user": claim.user.username, "tenant": claim.tenant}

    @admin.display(description=gettext_lazy("GPUs"), ordering="units")
    def gpus(self, claim: Claim) -> int | float | str:
        each = as_gpus(claim.units, claim.pool.units_per_gpu)
        return each if claim.members == 1 else f"{claim.members} × {each}"

    @admin.display(description=gettext_lazy("node"), ordering="node")
    def nodes_chosen(self, claim: Claim) -> str:
        return nodes_of(claim)

    @admin.display(description=gettext_lazy("place"), ordering="ahead")
    def queue_place(self, claim: Any) -> int | str:
        return claim.ahead + 1 if claim.state == Claim.State.WAITING else ""

    @admin.display(description=gettext_lazy("why"))
    def why(self, claim: Claim) -> str | SafeString:
        if may_be_confirmed(claim):
            return format_html(
                '<span class="said-bad">{}</span>', _("Its pod disappeared. Its end is not confirmed.")
            )
        if claim.state == Claim.State.WAITING:
            return reasons.sentence(claim.reason_code, claim.reason_data)
        if claim.state == Claim.State.ADMITTED and claim.reclaim_at:
            return reasons.sentence(claim.reclaim_code, {})
        return ""

    @admin.display(description=gettext_lazy("starts, or ends"))
    def until(self, claim: Claim) -> str:
        """Return the expected start or end, as far as it is known."""
        if claim.state == Claim.State.WAITING:
            return forecast_in_words(claim, timezone.now())
        if claim.state == Claim.State.RELEASED:
            return ""
        if claim.reclaim_at:
            at = date_format(timezone.localtime(claim.reclaim_at), "DATETIME_FORMAT")
            return _("being reclaimed, stops on %(time)s") % {"time": at}
        return date_format(timezone.localtime(claim.ends_at), "DATETIME_FORMAT") if claim.ends_at else ""
