"""What HAMi writes on nodes and pods: which cards there are, and who has how much of which. Pure.

A node announces its cards in an annotation: as JSON, or in older versions as `id,slots,MiB,percent,type,numa,health`
with colons between cards. A pod's allocation is `id,type,MiB,percent` with colons between cards, semicolons between
its containers. What cannot be read is as if it were not there: no card is given out that nobody described.
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
# Anybody may write annotations on a pod of theirs.
_HELD = re.compile(r"([^,\0]+),[^,]*,([0-9]{1,9}),([0-9]{1,9})(?:,.*)?", re.DOTALL)

Card = dict[str, Any]


def cards_of_node(annotations: Mapping[str, str]) -> list[Card]:
    """{id, memory_mib, cores, slots, usable} of each card; empty where HAMi is not, or has given the node up."""
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
    """As Go writes it: what is zero or false is left out."""
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
    if "\0" in str(uid):  # no database keeps that
        raise ValueError(uid)
    return {
        "id": str(uid),
        "memory_mib": int(memory_mib),
        "cores": int(cores),
        "slots": int(slots),
        "usable": usable,
    }


def cards_of_pod(annotations: Mapping[str, str]) -> list[Card]:
    """{id, memory_mib, cores} of each card that the pod was given, once for each of its containers that has it."""
    parts = annotations.get(ALLOCATED, "").replace(";", ":").split(":")
    return [
        {"id": found[1], "memory_mib": int(found[2]), "cores": int(found[3])}
        for found in map(_HELD.fullmatch, parts)
        if found
    ]
