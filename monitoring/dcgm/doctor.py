"""Doctor's findings about a cluster's Prometheus: does it answer, and does it know the GPUs of this cluster?"""

from __future__ import annotations

from collections.abc import Iterator

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from clusters.doctor import Check, Finding, Level, named
from clusters.models import Cluster
from monitoring.dcgm.prometheus import NoAnswer
from monitoring.dcgm.readings import ask

WITHIN_SECONDS = 5.0  # a person waits for the page


def findings(cluster: Cluster) -> Iterator[Finding]:
    """Yield the findings; none if the cluster has no Prometheus."""
    if not cluster.prometheus_url:
        return
    try:
        batches = ask(cluster, timezone.now(), within_seconds=WITHIN_SECONDS)
    except NoAnswer as why:
        hint = _("Check the address and the token's file in the cluster's settings.")
        yield Finding(Level.FAIL, str(why), hint, Check.AGENTS)
        return
    if not batches:
        yield Finding(
            Level.WARN,
            _("Prometheus has no GPU data of this cluster's nodes."),
            _("Does it scrape dcgm-exporter, and is the label Hostname a node's name?"),
            Check.AGENTS,
        )
        return
    count = sum(len(batch["inventory"]["gpus"]) for batch in batches)
    text = ngettext("Prometheus has data of %(count)d GPU.", "Prometheus has data of %(count)d GPUs.", count)
    yield Finding(Level.OK, text % {"count": count}, check=Check.AGENTS)
    if unknown := [batch["node"] for batch in batches if "holdings" not in batch["reports"][0]]:
        yield Finding(
            Level.WARN,
            _("Prometheus does not show which pods use the GPUs of %(nodes)s.") % {"nodes": named(unknown)},
            _("Let dcgm-exporter map GPUs to pods (DCGM_EXPORTER_KUBERNETES=true)."),
            Check.AGENTS,
        )
