"""Pages that show pools hear that something became another: who holds what, who waits, or a node."""

from typing import Any

from accounts.live import publish

GROUP = "pools"


def on_change(**_: Any) -> None:
    publish(GROUP, {"type": "pools.changed"})
