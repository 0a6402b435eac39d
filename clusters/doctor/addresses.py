"""Findings about addresses of workspaces: what provides them, and whether any are left."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from clusters import address_pools
from clusters.api import Api
from clusters.doctor.findings import Finding, Level, fail, ok, warn
from clusters.kinds import METALLB
from clusters.models import Cluster
from clusters.own_place import is_inside
from clusters.transport import Objects


def _through_the_portal() -> Finding:
    if settings.WORKSPACE_DOMAIN:
        domain = f"*.{settings.WORKSPACE_DOMAIN}"
        return ok(_("Workspaces are reached through Berth, at %(domain)s.") % {"domain": domain})
    return fail(
        _("Workspaces should be reached through Berth, but no domain is set for them."),
        _("Set BERTH_WORKSPACE_DOMAIN, and let its DNS entry *.<domain> and your ingress lead to Berth."),
    )


def _by_node_ports(cluster: Cluster) -> Finding:
    at = cluster.node_address or _("each node’s own address")
    if settings.WORKSPACE_DOMAIN:
        return ok(_("SSH is reached at ports of the nodes, at %(address)s.") % {"address": at})
    return warn(
        _("SSH is reached at ports of the nodes, at %(address)s. JupyterLab cannot be opened.")
        % {"address": at},
        _("Set BERTH_WORKSPACE_DOMAIN to open JupyterLab through Berth."),
    )


def _in_clear_text() -> Iterator[Finding]:
    if not settings.WORKSPACE_DOMAIN:
        yield warn(
            _(
                "JupyterLab is opened at the workspace's own address, in clear text: the network can read along."
            ),
            _("Set BERTH_WORKSPACE_DOMAIN to open it through Berth, by HTTPS."),
        )


def _from_outside(cluster: Cluster) -> Iterator[Finding]:
    """Warn of JupyterLab that only pods of the cluster can reach, where Berth is none."""
    if settings.WORKSPACE_DOMAIN and not is_inside(cluster):
        yield warn(
            _("JupyterLab is reached at addresses inside the cluster, but Berth runs outside of it."),
            _(
                "Run Berth in the cluster, choose LoadBalancer in the cluster's settings, or route the cluster's pod "
                "and service networks to Berth."
            ),
        )


def beside_berth() -> Iterator[Finding]:
    """Warn of a domain of workspaces that shares its registrable domain with Berth's own pages."""
    host = urlsplit(settings.BASE_URL).hostname or ""
    if shared := shared_domain(host, settings.WORKSPACE_DOMAIN):
        yield warn(
            _("Workspaces at %(domain)s and Berth at %(host)s share the domain %(shared)s.")
            % {"domain": settings.WORKSPACE_DOMAIN, "host": host, "shared": shared},
            _(
                "Pages and apps in a workspace can set cookies for all of %(shared)s. Give workspaces a registered "
                "domain of their own: BERTH_WORKSPACE_DOMAIN."
            )
            % {"shared": shared},
        )


def shared_domain(host: str, other: str) -> str:
    """Return the domain below a public suffix that contains both names; "" if there is none.

    No list of suffixes is kept: one label is taken for a suffix, and so are two short ones as co.uk.
    """
    common: list[str] = []
    for one, another in zip(reversed(host.split(".")), reversed(other.split(".")), strict=False):
        if one != another or one.isdigit():
            break
        common.insert(0, one)
    is_suffix = len(common) < 2 or (len(common) == 2 and len(common[1]) == 2 and len(common[0]) <= 3)
    return "" if is_suffix else ".".join(common)


def addresses(api: Api, cluster: Cluster) -> Iterator[Finding]:
    if cluster.exposure == Cluster.Exposure.LOAD_BALANCER:
        yield from _by_load_balancer(api)
        yield from _in_clear_text()
        return
    is_by_ports = cluster.exposure == Cluster.Exposure.NODE_PORT
    yield _by_node_ports(cluster) if is_by_ports else _through_the_portal()
    yield from _from_outside(cluster)


def _by_load_balancer(api: Api) -> Iterator[Finding]:
    """Infer from pools, Services and nodes what gives Services addresses: no API names it."""
    if METALLB in api.groups():
        yield from metallb_pools(api)
    services = [body for body in api.list("Service") if body["spec"].get("type") == "LoadBalancer"]
    waiting = [body for body in services if not body.get("status", {}).get("loadBalancer", {}).get("ingress")]
    if len(services) > len(waiting):
        yield ok(_("Services of type LoadBalancer get addresses."))
    elif services:
        yield warn(
            _("%(count)s Services of type LoadBalancer wait for an address.") % {"count": len(waiting)},
            _(
                "Install MetalLB and give it a pool of addresses, or choose NodePort in the cluster's settings."
            ),
        )
    elif METALLB in api.groups():
        yield ok(_("Addresses come from MetalLB."))
    elif provider := address_provider(api.list("Node")):
        yield ok(_("Addresses come from %(provider)s.") % {"provider": provider})
    else:
        yield warn(
            _("Found nothing that gives addresses to Services of type LoadBalancer."),
            _(
                "Install MetalLB, or choose NodePort in the cluster's settings. A first workspace will show it."
            ),
        )


def address_provider(node_bodies: Objects) -> str:
    providers = {body.get("spec", {}).get("providerID", "").partition(":")[0] for body in node_bodies}
    return next(iter(sorted(providers - {"", "kind", "k3s"})), "")


def metallb_pools(api: Api) -> Iterator[Finding]:
    found = address_pools.pools(api)
    if not found:
        yield fail(
            _("MetalLB is installed and has no pool of addresses."),
            _("Give it an IPAddressPool and an L2Advertisement."),
        )
    for pool in found:
        facts = {"pool": pool.name, "free": pool.free, "total": pool.total}
        if pool.free == 0:
            level, text = Level.FAIL, _("MetalLB's pool %(pool)s has no address left of %(total)d.")
        elif pool.is_nearly_used_up:
            level, text = Level.WARN, _("MetalLB's pool %(pool)s has %(free)d addresses left of %(total)d.")
        else:
            level, text = Level.OK, _("MetalLB's pool %(pool)s has %(free)d addresses left of %(total)d.")
        hint = (
            ""
            if level == Level.OK
            else _(
                "Add addresses to it: each workspace with its own address takes one, also while stopped, unless the "
                "cluster's settings free it then."
            )
        )
        yield Finding(level, text % facts, hint)
