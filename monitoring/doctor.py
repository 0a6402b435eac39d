"""Doctor's findings about node agents: nodes without one, and differences between reports. And its hourly run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _

from clusters.api import Api
from clusters.doctor import Check, Finding, Level, keeping, named
from clusters.doctor.agreement import CLOCKS_APART, differences
from clusters.explain import hint as advice
from clusters.explain import sentence
from clusters.models import Cluster, Node
from clusters.nodes.node_labels import driver_of
from clusters.watch.ticks import is_due
from monitoring import enqueue
from monitoring.dcgm import doctor as prometheus
from monitoring.dcgm.translation import AGENT as PROMETHEUS
from monitoring.health.rules import BLINDING, About, is_silent, offered
from monitoring.models import AgentState
from monitoring.parts import looks as parts
from monitoring.parts import rules, versions
from monitoring.validation.queries import failing
from vitals.pulse import heard_since

DUE_EVERY_SECONDS = 60  # looks for clusters whose examination is due


def on_tick(**_: object) -> None:
    if is_due(DUE_EVERY_SECONDS):
        for cluster in Cluster.objects.filter(unreachable_since=None):
            if keeping.is_due(cluster):
                enqueue.examine(cluster.pk)


def examine(cluster_id: UUID) -> None:
    if cluster := Cluster.objects.filter(pk=cluster_id).first():
        keeping.examine_if_due(cluster)


def findings_about(cluster: Cluster, _api: Api | None = None) -> Iterator[Finding]:
    nodes = list(Node.objects.filter(cluster=cluster).order_by("name"))
    agents = list(AgentState.objects.filter(cluster=cluster))
    with_gpus = [node for node in nodes if any(offered(node.allocatable | node.capacity))]
    yield from of_agents(cluster, with_gpus, agents)
    yield from of_reports(nodes, agents)
    yield from of_parts(cluster)
    yield from prometheus.findings(cluster)
    there = {node.name for node in nodes}
    if names := [name for name in failing(cluster.pk) if name in there]:
        yield Finding(
            Level.WARN,
            _("The last test of the GPUs of %(nodes)s failed: nothing new gets them.")
            % {"nodes": named(names)},
            _("Read its log under “Tests of GPUs”, repair the node, and test it again."),
            Check.NODES,
        )


# Doctor says these itself, by what it asks the cluster for (clusters/doctor/nodes.py, agreement.py).
SAID_ELSEWHERE = frozenset({"node_versions_differ"})


def of_parts(cluster: Cluster) -> Iterator[Finding]:
    """Yield what is wrong with the parts of the cluster now, and versions that do not fit, however short it lasts."""
    seen = parts.seen_in(cluster, timezone.now())
    found = [*rules.verdicts(seen), *versions.verdicts(parts.inventory_of(cluster))]
    told = [verdict for verdict in found if verdict.code not in SAID_ELSEWHERE]
    for verdict in told:
        text, hint = sentence(verdict.code, verdict.data), advice(verdict.code, verdict.data)
        yield Finding(Level.WARN, text, hint, Check.NODES if verdict.about == About.PART else Check.AGREEMENT)
    if seen.pods and not told:
        known = sorted({f"{pod.part} {pod.version}".strip() for pod in seen.pods})
        text = _("Parts of the cluster that run as they should: %(parts)s.") % {"parts": _(", ").join(known)}
        yield Finding(Level.OK, text, check=Check.NODES)


def of_agents(cluster: Cluster, with_gpus: Sequence[Node], agents: Sequence[AgentState]) -> Iterator[Finding]:
    if not with_gpus:
        yield Finding(Level.OK, _("No node has GPUs to be watched."), check=Check.AGENTS)
        return
    reported, now = {agent.node for agent in agents}, timezone.now()
    without = [node.name for node in with_gpus if node.name not in reported]
    if without and cluster.prometheus_url:
        text = _("No agent runs on %(nodes)s; figures come from Prometheus.") % {"nodes": named(without)}
        yield Finding(Level.OK, text, check=Check.AGENTS)
    elif without:
        yield Finding(
            Level.WARN,
            _("Nothing monitors the GPUs of %(nodes)s: no agent has reported them.")
            % {"nodes": named(without)},
            _(
                "Install the node agent there (deploy/kubernetes/agent.yaml), or name a Prometheus that has "
                "dcgm-exporter's figures."
            ),
            Check.AGENTS,
        )
    hears_since = heard_since("web")
    silent = [agent.node for agent in agents if is_silent(agent, now, hears_since)]
    if silent:
        yield Finding(
            Level.WARN,
            _("The agents of %(nodes)s no longer report.") % {"nodes": named(silent)},
            _("Check their pods: are they running, and can they reach Berth?"),
            Check.AGENTS,
        )
    blind = {agent.node: codes for agent in agents if (codes := blinding(agent)) and agent.node not in silent}
    for node, codes in sorted(blind.items()):
        yield Finding(
            Level.WARN,
            _("The agent of %(node)s sees no GPU: %(codes)s.") % {"node": node, "codes": _(", ").join(codes)},
            _("docs/operator/agent.md says what each of these codes means, and what to do."),
            Check.AGENTS,
        )
    if agents and not without and not silent and not blind:
        yield Finding(Level.OK, _("Every node with GPUs has an agent that reports them."), check=Check.AGENTS)
    if simulated := [agent.node for agent in agents if agent.is_simulated]:
        text = _("The agents of %(nodes)s are simulated: there are no GPUs.") % {"nodes": named(simulated)}
        yield Finding(Level.OK, text, check=Check.AGENTS)


def blinding(agent: AgentState) -> list[str]:
    """Return the problems for which an agent that reports sees no GPU, as its codes name them."""
    return sorted({trouble["code"] for trouble in agent.troubles} & BLINDING)


def of_reports(nodes: Sequence[Node], agents: Sequence[AgentState]) -> Iterator[Finding]:
    """Yield disagreements between reports. Labels are checked elsewhere, but change only when the plugin starts."""
    labelled = {node.name: driver_of(node.labels) for node in nodes}
    stale = {
        agent.node
        for agent in agents
        if agent.driver_version and labelled.get(agent.node) not in (None, "", agent.driver_version)
    }
    if stale:
        yield Finding(
            Level.WARN,
            _("The labels of %(nodes)s name another driver version than the one in use.")
            % {"nodes": named(stale)},
            _("Restart GPU Feature Discovery there."),
            Check.AGREEMENT,
        )
    others = {agent.node: agent for agent in agents if not labelled.get(agent.node)}
    drivers = {node: agent.driver_version for node, agent in others.items()}
    yield from of_agreement(_("NVIDIA drivers"), drivers)
    yield from of_agreement(_("CUDA versions"), {node: agent.cuda_version for node, agent in others.items()})
    # Prometheus' data is as old as its scrape, so its delay says nothing about clocks.
    apart = {agent.node: agent.taken_at - agent.seen_at for agent in agents if agent.agent != PROMETHEUS}
    if wrong := [node for node, difference in apart.items() if abs(difference) > CLOCKS_APART]:
        yield Finding(
            Level.WARN,
            _("The clocks of %(nodes)s differ from Berth's, or their reports arrive late.")
            % {"nodes": named(wrong)},
            _("Synchronize the clocks of all machines, including Berth's, with NTP."),
            Check.AGREEMENT,
        )


def of_agreement(what: str, values: dict[str, str]) -> Iterator[Finding]:
    for finding in differences(what, values):
        yield Finding(finding.level, finding.message, finding.hint, Check.AGREEMENT)
