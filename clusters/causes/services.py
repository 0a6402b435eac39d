"""Why a Service gets no address: MetalLB's events, and those of cloud controllers."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from clusters.causes.cause import Cause

CAUSES = (
    Cause(
        "addresses_used_up",
        r"no available IPs|pool .*(exhausted|has no available)|\"?<nil>\"?\]? is not allowed in config",
        _("All addresses for workspaces are in use."),
        _("It goes on when somebody stops. An admin can add addresses to the load balancer's pool."),
        "admin",
    ),
    Cause(
        "address_pool_missing",
        r"unknown pool|pool \"?(?P<pool>[^\s\"]+)\"? (does not exist|not found)|not allowed in config",
        _("The address pool that the cluster's settings name does not exist."),
        _("An admin has to correct the load balancer's pool."),
        "admin",
    ),
    Cause(
        "address_conflict",
        r"can't change sharing key|address also in use|\b(IP|address)\b.*already allocated",
        _("The address is used by something else."),
        _("An admin has to look at the load balancer's settings."),
        "admin",
    ),
    Cause(
        "address_failed",
        r"AllocationFailed|Failed to allocate IP|SyncLoadBalancerFailed|Error syncing load balancer",
        _("No address could be given to it."),
        _("It is tried again by itself. Tell an admin if it lasts."),
        "admin",
    ),
)
