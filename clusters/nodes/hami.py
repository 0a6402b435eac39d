"""Annotations that HAMi writes on nodes and pods: which cards exist, and how much of each a pod has. Pure.

A node announces its cards in an annotation: as JSON, or in older versions as `id,slots,MiB,percent,type,numa,health`
with colons between cards. A pod's allocation is `id,type,MiB,percent` with colons between cards, semicolons between
its containers. Unreadable annotations count as absent: no card is handed out that nobody described.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

REGISTER = "hami.io/node-nvidia-register"
HANDSHAKE = "hami.io/node-handshake"
CORDON = "hami.io/device-cordon"
ALLOCATED = "hami.io/vgpu-devices-allocated"
OLD_FIELDS = (7, 9)
# Strict, because anybody may write annotations on their own pods.
_HELD = re.compile(r"([^,\0]+),[^,]*,([0-9]{1,9}),([0-9]{1,9})(?:,.*)?", re.DOTALL)

Card = dict[str, Any]


def cards_of_node(annotations: Mapping[str, str]) -> list[Card]:
    """Return {id, memory_mib, cores, slots, usable} per card; empty without HAMi, or if it gave up the node."""
    if annotations.get(HANDSHAKE, "").startswith("Deleted"):
        return []
    cordoned = {uid.strip() for uid in annotations.get(CORDON, "").split(",")}
    text = annotations.get(REGISTER, "").strip()
    try:
        cards = list(_from_json(text) if text.startswith("[") else _from_colons(text))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return []
    for card in cards:
        card["usable"] = card["usable"] and card["id"] not in cordoned
    return sorted(cards, key=lambda card: str(card["id"]))


def _from_json(text: str) -> Iterator[Card]:
    """Yield cards from JSON as Go writes it, which leaves out what is zero or false."""
    for entry in json.loads(text):
        yield _card(
            entry["id"],
            entry.get("count", 0),
            entry.get("devmem", 0),
            entry.get("devcore", 0),
            entry.get("health", False) is True,
        )


def _from_colons(text: str) -> Iterator[Card]:
    for part in filter(None, text.split(":")):
        fields = part.split(",")
        if len(fields) not in OLD_FIELDS:
            raise ValueError(part)
        uid, slots, memory_mib, cores = fields[:4]
        yield _card(uid, slots, memory_mib, cores, fields[6].lower() in ("true", "t", "1"))


def _card(uid: Any, slots: Any, memory_mib: Any, cores: Any, usable: bool) -> Card:
    if "\0" in str(uid):  # PostgreSQL stores no NUL
        raise ValueError(uid)
    return {
        "id": str(uid),
        "memory_mib": int(memory_mib),
        "cores": int(cores),
        "slots": int(slots),
        "usable": usable,
    }


def cards_of_pod(annotations: Mapping[str, str]) -> list[Card]:
    """Return {id, memory_mib, cores} of each card of the pod, once for each container that has it."""
    parts = annotations.get(ALLOCATED, "").replace(";", ":").split(":")
    return [
        {"id": found[1], "memory_mib": int(found[2]), "cores": int(found[3])}
        for found in map(_HELD.fullmatch, parts)
        if found
    ]
