"""Isolation as a condition of a launch: refused where networks are unknown, unless an admin runs without."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict
from accounts.models import Scope
from accounts.trail import audit
from clusters.isolation.networks import missing
from clusters.models import Cluster


def may_launch(cluster: Cluster) -> bool:
    """Return True if tenants are isolated from each other there, or an admin runs the cluster without isolation."""
    return cluster.without_isolation or not missing(cluster)


def any_without() -> bool:
    """Return True if a cluster of this installation runs without isolation: every page says so."""
    return Cluster.objects.filter(without_isolation=True).exists()


def refuse_unknown(cluster: Cluster) -> None:
    """Raise a Conflict that names what to fill in, if nothing may be launched in the cluster."""
    if may_launch(cluster):
        return
    facts = {"cluster": cluster.name, "networks": names(missing(cluster))}
    raise Conflict(
        "isolation_unknown",
        _(
            "Nothing can be launched in cluster “%(cluster)s” yet: Berth cannot isolate teams from each other "
            "there, because these networks are unknown: %(networks)s."
        )
        % facts,
        _(
            "An admin has to fill them in, in the settings of the cluster, or choose “Run without isolation” there."
        ),
    )


def names(fields: list[str]) -> str:
    """Return the fields as an admin sees them on the cluster's page."""
    return _(", ").join(str(Cluster._meta.get_field(name).verbose_name) for name in fields)  # type: ignore[union-attr]


def set_without_isolation(actor: Actor, cluster: Cluster, *, without: bool) -> bool:
    """Run the cluster without isolation, or require it again. Return False if it was so already."""
    actor.require(Scope.ADMIN)
    with transaction.atomic():
        rows = Cluster.objects.filter(pk=cluster.pk, without_isolation=not without)
        if not rows.update(without_isolation=without):
            return False
        action = "cluster.without_isolation" if without else "cluster.with_isolation"
        audit.record(actor, action, target=cluster, data={"name": cluster.name})
    return True
