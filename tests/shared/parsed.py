"""Answers in other formats than JSON, parsed."""

from __future__ import annotations

from typing import Any

from asgiref.sync import async_to_sync
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families


def csv_of(answer: Any) -> list[str]:
    """Return the lines of a CSV answer."""

    async def read() -> str:
        return b"".join([part async for part in answer.streaming_content]).decode()

    return async_to_sync(read)().splitlines()


def samples(client: Client) -> dict[tuple[str, ...], float]:
    """Map (metric, label values …) to value, as `/metrics` has them."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}
