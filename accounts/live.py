"""Notify open pages of changes: a message carries an id, the row holds the truth."""

from collections.abc import Sequence
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction


def publish(group: str, message: dict[str, Any]) -> None:
    """Send to a group of websockets when the transaction commits, at most once: readers then read the rows."""
    publish_to_all([group], message)


def publish_to_all(groups: Sequence[str], message: dict[str, Any]) -> None:
    """Send to several groups at once, when the current transaction commits."""
    layer = get_channel_layer()
    if hasattr(layer, "publish"):
        layer.publish(groups, message)  # PostgreSQL itself delivers it on commit
    elif layer is not None:
        for group in groups:
            transaction.on_commit(lambda group=group: async_to_sync(layer.group_send)(group, message))  # type: ignore[misc]
