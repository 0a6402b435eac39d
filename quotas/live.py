"""Live updates of pages that show pools: a claim, the queue or a node changed."""

from typing import Any

from accounts.live import publish

GROUP = "pools"


def on_change(**_: Any) -> None:
    publish(GROUP, {"type": "pools.changed"})
