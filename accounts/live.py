"""Tell open pages that something changed: an id now, the truth in the row."""

from collections.abc import Sequence
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction


def publish(group: str, message: dict[str, Any]) -> None:
    """Send to a group of websockets when the current transaction commits. At most once: readers re-read rows."""
    publish_to_all([group], message)


def publish_to_all(groups: Sequence[str], message: dict[str, Any]) -> None:
    """The same to several groups at once."""
    layer = get_channel_layer()
    if hasattr(layer, "publish"):
        layer.publish(groups, message)  # transactional by PostgreSQL itself
    elif layer is not None:
        for group in groups:
            transaction.on_commit(lambda group=group: async_to_sync(layer.group_send)(group, message))  # type: ignore[misc]
