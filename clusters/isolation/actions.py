"""Actions of an admin about a cluster's isolation: each asks with a preview and is audited."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from clusters.isolation.deciding import names, set_without_isolation
from clusters.isolation.networks import missing
from clusters.models import Cluster

# Names in Cluster.found_networks, as an admin reads them.
FOUND = {
    "pods": gettext_lazy("pod networks"),
    "services": gettext_lazy("service networks"),
    "api": gettext_lazy("addresses of the API server"),
    "entrances": gettext_lazy("addresses that lead to the API server"),
    "nodes": gettext_lazy("addresses of the nodes"),
}


class RunWithoutIsolation(Previewed[Cluster]):
    name = "run_without_isolation"
    short_description = gettext_lazy("Run without isolation …")
    title = gettext_lazy("Run clusters without isolation")
    button = gettext_lazy("Run without isolation")
    is_grave = True
    tick = gettext_lazy(
        "Run without isolation: workspaces of different teams may reach each other and the cluster."
    )

    def notes(self) -> list[str]:
        return [
            _("Every page says so from then on. Network policies still deny the networks that are known.")
        ]

    def effect_on(self, row: Cluster) -> Effect:
        if row.without_isolation:
            return Effect(str(row.pk), row.name, refused=_("It runs without isolation already."))
        if not (gaps := missing(row)):
            return Effect(str(row.pk), row.name, refused=_("Its networks are known: tenants are isolated."))
        return Effect(str(row.pk), row.name, (_("Unknown: %(gaps)s.") % {"gaps": names(gaps)},))

    def apply(self, actor: Actor, row: Cluster) -> bool:
        return set_without_isolation(actor, row, without=True)

    def done(self, count: int) -> str:
        text = ngettext(
            "%(count)d cluster runs without isolation.", "%(count)d clusters run without isolation.", count
        )
        return text % {"count": count}


class RequireIsolation(Previewed[Cluster]):
    name = "require_isolation"
    short_description = gettext_lazy("Require isolation …")
    title = gettext_lazy("Require isolation of tenants")
    button = gettext_lazy("Require isolation")

    def effect_on(self, row: Cluster) -> Effect:
        if not row.without_isolation:
            return Effect(str(row.pk), row.name, refused=_("It requires isolation already."))
        if gaps := missing(row):
            text = _("Nothing can be launched there until these are filled in: %(gaps)s. What runs goes on.")
            return Effect(str(row.pk), row.name, (text % {"gaps": names(gaps)},))
        return Effect(str(row.pk), row.name, (_("Its networks are known: launches go on."),))

    def apply(self, actor: Actor, row: Cluster) -> bool:
        return set_without_isolation(actor, row, without=False)

    def done(self, count: int) -> str:
        text = ngettext(
            "%(count)d cluster requires isolation.", "%(count)d clusters require isolation.", count
        )
        return text % {"count": count}
