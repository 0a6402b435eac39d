"""The admin's overview: what needs attention now, in a fixed number of queries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Min, Q
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.notices.models import Notice
from clusters.doctor import Check
from clusters.isolation.deciding import names as network_names
from clusters.isolation.networks import missing
from clusters.models import Cluster, UnknownCause
from monitoring.models import Finding, Trouble
from monitoring.post_mortems import groups
from monitoring.post_mortems.words import of_group
from portal.admin.claims import ASKED_BACK, LOST, NEVER, nodes_of
from quotas import reasons
from quotas.admin.shared import gpus_meter
from quotas.allowed import overuse
from quotas.allowed.usage import held_in_pools
from quotas.holders import names_of
from quotas.models import Claim, Flavor, Pool
from quotas.pools import health
from quotas.pools import nodes as pool_nodes
from quotas.pools.map_queries import why_of_others
from quotas.pools.nodes import PoolNodes
from quotas.queries import place_in_queue
from quotas.when import forecast_in_words
from workspaces.models import Phase, Workspace
from workspaces.state import story

MOST_NAMED = 5
FAILED_RECENTLY = timedelta(hours=24)


@dataclass(frozen=True)
class Item:
    """A problem to look at: how bad, what, and where."""

    level: str  # bad or warn
    text: str
    hint: str
    address: str


@dataclass(frozen=True)
class Wait:
    claim: Claim
    name: str
    why: str
    since: datetime
    place: int
    when: str


def overview() -> dict[str, Any]:
    pools = list(Pool.objects.select_related("cluster"))
    nodes = pool_nodes.nodes_of(pools, with_runs=False)
    items = [
        *of_clusters(), *of_pools(pools, nodes), *health_problems(), *lost(), *over_quota(), *impossible_requests(),
        *preemptions(), *drifted(), *still_attached(), *failing_alike(), *failed(), *mail(), *unexplained(),
    ]  # fmt: skip
    return {
        "items": sorted(items, key=lambda item: item.level != "bad"),
        "waits": longest_waits(),
        "figures": figures([pool for pool in pools if pool.has_gpus], nodes),
    }


def of_clusters() -> Iterator[Item]:
    """Yield what is wrong with clusters: no answer, no launches, no isolation, or something that doctor misses."""
    for cluster in Cluster.objects.all():
        name, address = {"name": cluster.name}, reverse("admin:clusters_cluster_change", args=[cluster.pk])
        if cluster.unreachable_since:
            hint = _(
                "Running workspaces there are not affected, but nothing can start or stop. Test its connection."
            )
            yield Item("bad", _("%(name)s does not answer.") % name, hint, address)
        if cluster.without_isolation:
            hint = _(
                "Workspaces of different teams may reach each other. Fill in its networks, then require isolation."
            )
            yield Item("warn", _("%(name)s runs without isolation.") % name, hint, address)
        elif gaps := missing(cluster):
            text = _("Nothing can be launched in %(name)s: its networks are not known.") % name
            hint = _("Fill in what is missing, or run it without isolation: %(gaps)s.")
            yield Item("bad", text, hint % {"gaps": network_names(gaps)}, address)
        if cluster.doctor_failures and not cluster.unreachable_since:
            yield red(cluster)


def red(cluster: Cluster) -> Item:
    """Return what the last examination found, by the names of its checks."""
    count = sum(cluster.doctor_failures.values())
    text = ngettext(
        "Doctor finds %(count)d thing missing in %(name)s: %(checks)s.",
        "Doctor finds %(count)d things missing in %(name)s: %(checks)s.",
        count,
    )
    checks = _(", ").join(str(check.label) for check in Check if check in cluster.doctor_failures)
    at = date_format(timezone.localtime(cluster.doctor_at), "H:i") if cluster.doctor_at else ""
    return Item(
        "bad",
        text % {"count": count, "name": cluster.name, "checks": checks},
        _("Checked at %(time)s. Doctor says what to do about each.") % {"time": at},
        reverse("admin:clusters_cluster_doctor", args=[cluster.pk]),
    )


def of_pools(pools: Sequence[Pool], nodes: Mapping[UUID, PoolNodes]) -> Iterator[Item]:
    """Yield pools in which nothing can start: out of use, without nodes, without a node that works, without sizes."""
    with_sizes = set(Flavor.objects.filter(pool__in=pools).values_list("pool", flat=True))
    for pool in pools:
        name, address = {"pool": pool.name}, reverse("admin:quotas_pool_change", args=[pool.pk])
        seen = nodes[pool.pk]
        if not pool.is_open:
            hint = _("Nothing new starts there. Put it into use again when the work is done.")
            yield Item("warn", _("%(pool)s is out of use.") % name, hint, address)
        elif not seen.whole:
            hint = _("Nothing can start there. Check the labels by which it chooses its nodes.")
            yield Item("bad", _("No node belongs to %(pool)s.") % name, hint, address)
        elif not seen.healthy:
            why = " ".join(health.words(health.told(pool, seen.out))) or _(
                "Its nodes are reserved for others."
            )
            yield Item("bad", _("No node of %(pool)s can take anything new.") % name, why, address)
        elif pool.has_gpus and not any(room.units for room in seen.whole):
            hint = _(
                "Its nodes do not announce %(resource)s. Check the device plugin, or the pool's resource."
            )
            resource = {"resource": pool.resource_name}
            yield Item("bad", _("%(pool)s has no GPUs.") % name, hint % resource, address)
        elif pool.pk not in with_sizes:
            hint = _("People can launch there only by naming cores and memory. Add a size.")
            yield Item("warn", _("%(pool)s has no sizes.") % name, hint, address)


def health_problems() -> list[Item]:
    """Problems with nodes, GPUs, storage and addresses: one line for each kind, with the places."""
    by_code: defaultdict[str, list[Trouble]] = defaultdict(list)
    for trouble in Trouble.objects.filter(ended_at=None).order_by("-takes_out", "since"):
        by_code[trouble.code].append(trouble)
    return [
        Item(
            "bad" if troubles[0].takes_out else "warn",
            f"{story.sentence(code, troubles[0].data)} {_named(troubles)}".strip(),
            story.hint(code, troubles[0].data),
            reverse("admin:monitoring_trouble_changelist") + f"?q={code}",
        )
        for code, troubles in by_code.items()
    ]


def _named(troubles: Sequence[Trouble]) -> str:
    names = list(dict.fromkeys(trouble.node or trouble.subject for trouble in troubles))
    others = f" (+{len(names) - MOST_NAMED})" if len(names) > MOST_NAMED else ""
    return _(", ").join(names[:MOST_NAMED]) + others


def lost() -> list[Item]:
    by_node = Counter(map(nodes_of, Claim.objects.filter(LOST).order_by("node", "pk")))
    return [
        Item(
            "bad",
            ngettext(
                "%(count)d pod disappeared from %(node)s, and its end is not confirmed.",
                "%(count)d pods disappeared from %(node)s, and their end is not confirmed.",
                count,
            )
            % {"count": count, "node": node},
            _("Their GPUs stay in use. Check the node, and confirm the end if they are gone."),
            reverse("admin:quotas_claim_changelist") + "?lost=yes",
        )
        for node, count in by_node.items()
    ]


def over_quota() -> list[Item]:
    return [
        Item(
            "warn",
            _("%(tenant)s uses %(used)s GPUs of %(pool)s, but its limit is %(limit)s.")
            % {
                "tenant": quota.tenant,
                "pool": quota.pool,
                "used": used,
                "limit": quota.nominal_gpus + quota.borrowing_limit_gpus,
            },
            _("They cannot start anything there until they use less."),
            reverse("admin:quotas_quota_change", args=[quota.pk]),
        )
        for quota, used in overuse.all_quotas()
    ]


def warning(count: int, text: str, hint: str, rows: str, query: str = "", **data: str) -> list[Item]:
    """Return one item about these rows of the admin, with a link to their list; none if there are no such rows."""
    address = reverse(f"admin:{rows}_changelist") + query
    return [Item("warn", text % {"count": count, **data}, hint, address)] if count else []


def impossible_requests() -> list[Item]:
    """Requests that can never start: only an admin or the requester can change that."""
    count = Claim.objects.filter(NEVER).count()
    text = ngettext(
        "%(count)d waiting request cannot start.",
        "%(count)d waiting requests cannot start.",
        count,
    )
    hint = _("They request more than their tenant, or any node, has. Raise the quota, or notify them.")
    return warning(count, text, hint, "quotas_claim", "?queue=never")


def preemptions() -> list[Item]:
    rows = Claim.objects.filter(ASKED_BACK)
    first, count = rows.aggregate(first=Min("reclaim_at"), count=Count("pk")).values()
    if not count:
        return []
    text = ngettext(
        "%(count)d run has to return borrowed GPUs and stops at %(time)s.",
        "%(count)d runs have to return borrowed GPUs; the first stops at %(time)s.",
        count,
    )
    at = date_format(timezone.localtime(first), "H:i")
    hint = _("Their owners have been notified. Nothing to do.")
    return warning(count, text, hint, "quotas_claim", "?queue=asked_back", time=at)


def still_attached() -> list[Item]:
    """Volumes that requests wait for because a node has not let go of them: one line for each node."""
    waits = Claim.objects.filter(state=Claim.State.WAITING, reason_code="volume_still_attached")
    by_node: defaultdict[str, set[str]] = defaultdict(set)
    for data in waits.values_list("reason_data", flat=True):
        for node in data["on"]:
            by_node[node].add(data["volume"])
    return [
        Item(
            "warn",
            _("%(node)s has %(volumes)s still attached, which no run uses, and others wait for.")
            % {"node": node, "volumes": _(", ").join(sorted(volumes)[:MOST_NAMED])},
            _(
                "If it stays so for minutes, look for what holds the mount on the node. If the node is off for good, "
                "taint it out of service."
            ),
            reverse("admin:clusters_node_changelist") + f"?q={node}",
        )
        for node, volumes in sorted(by_node.items())
    ]


def failing_alike() -> list[Item]:
    """Runs of the last days that keep ending in the same way, by node, GPU or image: as the alerts group them."""
    return [
        Item("bad", *of_group(firing.code, firing.data), firing.link)
        for firing in groups.firings()[:MOST_NAMED]
    ]


def failed() -> list[Item]:
    recent = timezone.now() - FAILED_RECENTLY
    count = Workspace.objects.filter(phase=Phase.FAILED, deleted_at=None, changed_at__gte=recent).count()
    text = ngettext(
        "%(count)d workspace failed in the last day.", "%(count)d workspaces failed in the last day.", count
    )
    hint = _("The page of each workspace shows why.")
    return warning(count, text, hint, "workspaces_workspace", "?phase__exact=failed")


def drifted() -> list[Item]:
    count = Finding.objects.open().count()
    text = ngettext(
        "%(count)d object in the clusters differs from Berth's records.",
        "%(count)d objects in the clusters differ from Berth's records.",
        count,
    )
    hint = _(
        "Somebody changed, removed or left something there. Check each one; nothing is repaired automatically."
    )
    return warning(count, text, hint, "monitoring_finding")


def mail() -> list[Item]:
    count = Notice.objects.filter(mail=Notice.Mail.GIVEN_UP).count()
    text = ngettext("%(count)d mail could not be sent.", "%(count)d mails could not be sent.", count)
    hint = _("Check the last error. Send them again once the mail server accepts them.")
    return warning(count, text, hint, "accounts_notice", "?mail__exact=given_up")


def unexplained() -> list[Item]:
    """Messages without an explanation, and how many of them came up in the last day."""
    rows = UnknownCause.objects.filter(dismissed_at=None)
    recent = Q(last_at__gte=timezone.now() - FAILED_RECENTLY)
    count, lately = rows.aggregate(count=Count("pk"), lately=Count("pk", filter=recent)).values()
    text = ngettext(
        "%(count)d message of the clusters is not explained.",
        "%(count)d messages of the clusters are not explained.",
        count,
    )
    hint = _("%(count)d of them came up in the last day. People see them as the cluster said them.")
    return warning(count, text, hint % {"count": lately}, "clusters_unknowncause", "?dismissed_at__isempty=1")


def longest_waits() -> list[Wait]:
    waiting = Claim.objects.filter(state=Claim.State.WAITING).select_related("user", "tenant", "pool")
    claims = list(waiting.annotate(ahead=place_in_queue()).order_by("created_at")[:MOST_NAMED])
    names, now = names_of(claims), timezone.now()
    return [
        Wait(
            claim,
            names.get(claim.holder_id, claim.get_holder_kind_display()),
            why(claim),
            claim.created_at,
            claim.ahead + 1,
            forecast_in_words(claim, now),
        )
        for claim in claims
    ]


def why(claim: Claim) -> str:
    """Return the reason in words for a third person. The cluster's own messages fit any reader."""
    if reasons.knows(claim.reason_code):
        return why_of_others(claim.reason_code)
    return reasons.sentence(claim.reason_code, claim.reason_data)


def figures(pools: Sequence[Pool], nodes: Mapping[UUID, PoolNodes]) -> list[tuple[Pool, SafeString]]:
    """Meter of the GPUs in use, per pool."""
    held = held_in_pools({pool.pk for pool in pools})
    return [
        (pool, gpus_meter(pool, held[pool.pk], sum(room.units for room in nodes[pool.pk].whole)))
        for pool in pools
    ]
