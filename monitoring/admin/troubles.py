"""Admin page for open and past problems of clusters, nodes and GPUs. Admins can put a GPU into use again."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from accounts.admin.recorded import ReadOnlyPage
from clusters.explain import steps
from clusters.models import Gpu
from monitoring.admin.filters import OpenFirst
from monitoring.health import trusting
from monitoring.models import Trouble
from workspaces.state import story


class Trust(Previewed[Trouble]):
    name = "trust"
    short_description = gettext_lazy("Use the GPU again …")
    title = gettext_lazy("Put GPUs into use again")
    button = gettext_lazy("Use again")

    def notes(self) -> list[str]:
        return [_("Earlier reports about them no longer count. New reports of their agents do.")]

    def effect_on(self, row: Trouble) -> Effect:
        whom = f"{row.subject} · {row.node}"
        if row.about != Trouble.About.GPU:
            return Effect(str(row.pk), whom, refused=_("This is not about one GPU."))
        if row.ended_at or not row.takes_out:
            return Effect(str(row.pk), whom, refused=_("It is in use."))
        return Effect(str(row.pk), whom, (_("New work may get it again."),))

    def apply(self, actor: Actor, row: Trouble) -> bool:
        gpu = Gpu.objects.filter(cluster=row.cluster_id, node=row.node, uuid=row.subject).first()
        return gpu is not None and trusting.trust(actor, gpu)

    def done(self, count: int) -> str:
        return ngettext("%(count)d GPU is in use again.", "%(count)d GPUs are in use again.", count) % {
            "count": count
        }


class StateFilter(OpenFirst):
    is_open = Q(ended_at=None)
    others: ClassVar = {"ended": (gettext_lazy("over"), Q(ended_at__isnull=False))}


@admin.register(Trouble)
class TroublePage(ReadOnlyPage[Trouble]):
    purpose = gettext_lazy(
        "Problems with nodes, GPUs, storage and addresses, with start and end. Each closes automatically "
        "when it is over."
    )
    list_display = ("sentence", "about", "subject", "node", "takes_out", "since", "ended_at", "cluster")
    list_filter = (StateFilter, "about", "takes_out", "cluster")
    list_select_related = ("cluster",)
    search_fields = ("subject", "node", "code")
    date_hierarchy = "since"
    actions = (Trust(),)
    fields = (
        "sentence", "what_to_do", "commands", "raw", "about", "subject", "node", "takes_out", "since", "ended_at",
        "cluster",
    )  # fmt: skip
    readonly_fields = fields

    def idle_fields(self, obj: Trouble) -> dict[str, object]:
        return {
            "commands": not steps(obj.code),
            "raw": not _raw(obj),
            "ended_at": not obj.ended_at,
            "node": obj.node in ("", obj.subject),
        }

    def buttons(self, request: HttpRequest, obj: Trouble) -> list[tuple[str, str]]:
        is_out = obj.about == Trouble.About.GPU and obj.takes_out and not obj.ended_at
        return [Trust().as_button] if is_out else []

    @admin.display(description=gettext_lazy("trouble"))
    def sentence(self, trouble: Trouble) -> str:
        return story.sentence(trouble.code, trouble.data)

    @admin.display(description=gettext_lazy("what to do"))
    def what_to_do(self, trouble: Trouble) -> str:
        return story.hint(trouble.code, trouble.data)

    @admin.display(description=gettext_lazy("commands"))
    def commands(self, trouble: Trouble) -> SafeString:
        found = steps(trouble.code, trouble.node)
        return format_html_join(
            "", "<p>{}</p><pre>{}</pre>", ((step.purpose, "\n".join(step.commands)) for step in found)
        )

    @admin.display(description=gettext_lazy("as reported"))
    def raw(self, trouble: Trouble) -> str:
        return _raw(trouble)


def _raw(trouble: Trouble) -> str:
    told = [str(trouble.data[name]) for name in ("raw", "detail") if trouble.data.get(name)]
    if "xid" in trouble.data:
        told.append(f"Xid {trouble.data['xid']}")
    return ", ".join(told)
