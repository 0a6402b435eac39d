"""Answer of `/metrics`, parsed."""

from __future__ import annotations

from django.test import Client
from prometheus_client.parser import text_string_to_metric_families


def samples(client: Client) -> dict[tuple[str, ...], float]:
    """Map (metric, label values …) to value."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}
