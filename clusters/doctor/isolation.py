"""Finding about isolation: tenants are kept from each other only if the cluster's networks are known."""

from __future__ import annotations

from django.utils.translation import gettext as _

from clusters.doctor.findings import Finding, ok, warn
from clusters.models import Cluster


def isolation_gaps(cluster: Cluster) -> list[str]:
    """Return the networks still missing before tenants count as isolated from each other."""
    networks = (
        (_("pod networks"), cluster.pod_cidrs),
        (_("service networks"), cluster.service_cidrs),
        (_("addresses of the API server"), cluster.api_cidrs),
    )
    return [name for name, cidrs in networks if not cidrs]


def isolation(cluster: Cluster) -> Finding:
    if gaps := isolation_gaps(cluster):
        return warn(
            _("Tenants are not isolated from each other: %(gaps)s are not set.")
            % {"gaps": _(", ").join(gaps)},
            _("Fill them in in the cluster's settings; workspaces get network policies made from them."),
        )
    return ok(_("Network policies keep tenants from each other and from the API server."))
