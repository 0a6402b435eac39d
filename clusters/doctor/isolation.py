"""Findings about isolation: tenants are kept from each other only if the cluster's networks are known."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from clusters.api import Api
from clusters.doctor.findings import Finding, fail, ok, warn
from clusters.isolation.deciding import names
from clusters.isolation.finding import refresh
from clusters.isolation.networks import missing, strays
from clusters.models import Cluster

MOST_SHOWN = 3  # addresses


def isolation(api: Api, cluster: Cluster) -> Iterator[Finding]:
    """Look for the networks anew, then say which are still unknown."""
    refresh(cluster, api)
    yield about(cluster)
    if outside := strays(cluster):
        yield warn(
            _("Pods have addresses outside the known pod networks, such as %(addresses)s.")
            % {"addresses": _(", ").join(outside[:MOST_SHOWN])},
            _("Fill in all networks that pods get addresses from: the network plugin's settings name them."),
        )


def about(cluster: Cluster) -> Finding:
    """Return what is known of the cluster's isolation."""
    gaps = missing(cluster)
    if not gaps:
        return ok(
            _(
                "The networks that workspaces must not reach are known, and network policies against them are made."
            )
        )
    message = _("Tenants are not isolated from each other. Unknown: %(gaps)s.") % {"gaps": names(gaps)}
    if cluster.without_isolation:
        return warn(message, _("An admin chose to run this cluster without isolation."))
    return fail(
        message,
        _(
            "Nothing can be launched. Fill them in in the cluster's settings, or choose “Run without isolation” "
            "there. Network policies are made from them."
        ),
    )
