"""Reasons: a sentence and a hint for each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from clusters import explain
from quotas import reasons, scheduling
from quotas.reasons import REASONS, hint, in_queue, sentence

# All figures that a decision may carry.
FIGURES = dict.fromkeys(
    [
        *("gpus", "used_gpus", "limit_gpus", "free_gpus", "largest_free_gpus", "largest_gpus", "own_gpus"),
        *("asked", "limit", "together", "free", "largest", "nodes", "fitting", "most", "limit_gpu_hours"),
        *("cards", "free_cards", "largest_cards", "card_memory_mib", "card_cores", "free_memory_mib"),
    ],
    2,
)
# Reasons why a run cannot be extended: they have no hint.
OF_EXTENDING = {"kept_for_others", "out_of_budget", "longest_runtime"}
TIMES: dict[str, dict[str, Any]] = {
    "no_free_extra": {"resource": "rdma/hca"},
    "no_node_has_extra": {"resource": "rdma/hca"},
    "volume_in_use": {"volume": "data", "by": ["exp-1", "exp-2"]},
    "volume_still_attached": {"volume": "data", "on": ["gpu-1"]},
    "volume_being_made": {"volume": "data"},
    "budget_spent": {"whose": "tenant", "from": "2026-02-01"},
    "booked": {"from": "2026-03-01T12:00:00+00:00"},
    "waits_for_reclaim": {"at": "2026-03-01T10:10:00+00:00"},
}


@pytest.mark.parametrize("code", sorted(REASONS))
def test_every_code_has_a_whole_sentence_and_what_to_do(code: str) -> None:
    data: dict[str, Any] = FIGURES | TIMES.get(code, {})
    message = sentence(code, data | ({"on": ["gpu-1", "gpu-2"]} if code.startswith("volume_") else {}))
    assert message.endswith(".")
    assert "%(" not in message
    assert code in {"", *OF_EXTENDING} or hint(code, data).endswith(".")


def test_every_code_of_the_rules_has_words() -> None:
    source = "".join(path.read_text() for path in Path(scheduling.__file__).parent.glob("*.py"))
    codes = set(re.findall(r'Reason\(\s*"(\w+)"', source))
    for prefix, suffix, names in (
        ("no_free_", "", ("cpu", "memory", "pods")),
        ("no_node_has_", "", ("cpu", "memory", "pods")),
        ("above_", "_limit", ("cpu", "memory", "workspaces")),
        ("", "_limit_full", ("cpu", "memory", "workspaces")),
    ):
        codes |= {f"{prefix}{name}{suffix}" for name in names}
    assert len(codes) > 15
    codes |= {
        "budget_spent",
        "ends_by_budget",
        "maintenance",
        scheduling.OWNER_WAITS,
        scheduling.BOOKING_BEGINS,
        *OF_EXTENDING,
    }
    assert codes - {""} == set(REASONS) - {""}


def test_no_code_means_two_things() -> None:
    assert not set(REASONS) & set(explain.BY_CODE)


def test_cpu_and_memory_are_shown_in_cores_and_gib() -> None:
    assert "1.5 CPU cores" in sentence("no_free_cpu", {"asked": 1500, "free": 0})
    assert "at most 0 free" in sentence("no_free_cpu", {"asked": 1500, "free": 0})
    assert "12345 GiB" in sentence("above_memory_limit", {"asked": 12345 * 1024, "limit": 100})
    assert "20 CPU cores" in sentence("above_cpu_limit", {"asked": 20_000, "limit": 100})


def test_a_full_quota_is_shown_with_its_figures() -> None:
    message = sentence("quota_full", {"gpus": 4, "used_gpus": 4, "limit_gpus": 4})
    assert message == "Your team uses 4 of the 4 GPUs of its quota. You requested 4."


def test_preemptions_and_bookings_are_shown_with_their_time() -> None:
    back = sentence("waits_for_reclaim", {"gpus": 2, "at": "2026-03-01T10:10:00+00:00"})
    assert "1 Mar 2026, 10:10 UTC" in back
    assert "1 Mar 2026, 12:00 UTC" in sentence("booked", {"from": "2026-03-01T12:00:00+00:00"})


def test_the_memory_of_a_card_is_shown_in_gib() -> None:
    data = {"cards": 1, "card_memory_mib": 10240, "card_cores": 30, "free_cards": 0, "free_memory_mib": 24576}
    assert "1 GPU with 10 GiB of memory and 30% of its cores" in sentence("no_free_cards", data)
    assert "24 GiB are free in all" in sentence("no_free_cards", data)


def test_a_reason_of_the_cluster_has_its_own_words() -> None:
    code = next(code for code in explain.BY_CODE)
    assert not reasons.knows(code)
    assert sentence(code, {"raw": "x"}) == explain.sentence(code, {"raw": "x"})


def test_the_number_of_requests_ahead_is_shown() -> None:
    assert in_queue("behind_others", {}, 4)["message"] == "4 requests are ahead of yours."
    assert in_queue("behind_others", {}, 1)["message"] == "1 request is ahead of yours."


@pytest.mark.parametrize(("gpus", "asked"), [(1, "1 GPU,"), (2, "2 GPUs,"), (0.5, "0.5 GPU,")])
def test_the_plural_follows_the_number_of_gpus(gpus: float, asked: str) -> None:
    assert sentence("above_quota", {"gpus": gpus, "limit_gpus": 0}).startswith(f"You requested {asked}")
