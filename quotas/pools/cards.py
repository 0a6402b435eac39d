"""Room on GPUs that are cut by memory and cores (HAMi), card by card: Kubernetes itself counts neither. Pure.

A node reports its cards, and a pod the cards that it was given. Until a pod reports them, its run is counted where
HAMi will put it: on the fullest cards that fit, as its pods request (`sharing/hami.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any

from quotas.scheduling import Card, Room

Device = Mapping[str, Any]


def usable(devices: Iterable[Device]) -> list[Device]:
    """Return the cards that are healthy and in use: others have no room."""
    return [device for device in devices if device["usable"]]


def left(
    devices: Sequence[Device], given: Iterable[Device], coming: Iterable[tuple[Card, ...]]
) -> tuple[tuple[Card, ...], list[tuple[Card, ...]]]:
    """Return the free part of each usable card, in a fixed order, and the coming needs that no longer fit."""
    cards = {
        device["id"]: Card(device["memory_mib"], device["cores"], device["slots"])
        for device in usable(devices)
    }
    for device in given:
        if device["id"] in cards:
            cards[device["id"]] -= Card(device["memory_mib"], device["cores"])
    room = Room(cards=tuple(cards.values()))
    displaced = []
    for need in coming:
        if room.holds(Room(cards=need)):
            room -= Room(cards=need)
        else:
            displaced.append(need)
    return room.cards, displaced


def shares_given(devices: Sequence[Device], given: Iterable[Device]) -> tuple[tuple[str, int], ...]:
    """Return the hundredths given of each card, as a claim counts them: the larger of both shares."""
    by_id = {device["id"]: device for device in devices if device["memory_mib"] and device["cores"]}
    return tuple(
        (
            device["id"],
            max(
                ceil(100 * device["memory_mib"] / by_id[device["id"]]["memory_mib"]),
                ceil(100 * device["cores"] / by_id[device["id"]]["cores"]),
            ),
        )
        for device in given
        if device["id"] in by_id
    )


def units(devices: Sequence[Device], cards: Sequence[Card]) -> int:
    """Return the hundredths of GPUs still to give: of each card, what is left of both memory and cores."""
    return sum(
        max(
            0, min(100 * card.memory_mib // device["memory_mib"], 100 * card.cores_percent // device["cores"])
        )
        for device, card in zip(usable(devices), cards, strict=True)
        if card.slots > 0 and device["memory_mib"] and device["cores"]
    )
