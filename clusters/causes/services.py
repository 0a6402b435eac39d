"""Reasons why a Service gets no address: events of MetalLB and of cloud controllers."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from clusters.causes.cause import Cause

CAUSES = (
    Cause(
        "addresses_used_up",
        r"no available (?:IP|address)|no (?:more |free )?(?:IPs?|address(?:es)?) (?:available|left)|(?:out of"
        r"|not enough) (?:IPs?|addresses)|pool .*(?:exhausted|has no available)"
        r"|\"?<nil>\"?\]? is not allowed in config"
        r"|failed to allocate a nodePort|provided port is already allocated|range is full",
        _("All addresses or ports for workspaces are in use."),
        _(
            "It continues when one becomes free. An admin can add addresses to the load balancer's pool, free those "
            "of stopped workspaces in the cluster's settings, or widen the range of node ports."
        ),
        "admin",
    ),
    Cause(
        "address_failed",
        r"unknown pool|pool \"?[^\s\"]+\"? (?:does not exist|not found)|not allowed in config"
        r"|can't change sharing key|address also in use|\b(?:IP|address)\b.*already allocated"
        r"|cannot own \[[^\]]*\] under new config|requested a different pool"
        r"|AllocationFailed|Failed to allocate IP|SyncLoadBalancerFailed|Error syncing load balancer"
        r"|failed to ensure load balancer|no available nodes for LoadBalancer|differentIPRequested|notAllowedByConfig"
        r"|different IP than the one|LoadBalancerIPPool|no pool owns|cannot assign \"|EnsureLoadBalancer"
        r"|CreatingLoadBalancerFailed",
        _("The load balancer could not give it an address."),
        _(
            "Berth retries automatically. If this continues, an admin has to check the load balancer: the "
            "pool that the settings name may not exist, or something else may use the address."
        ),
        "admin",
    ),
)
