"""Every reason is a sentence and a hint that a person can use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clusters import explain
from quotas import reasons, scheduling
from quotas.reasons import REASONS, hint, in_queue, sentence

# All figures that a decision may carry.
FIGURES = dict.fromkeys(
    [
        *("gpus", "used_gpus", "limit_gpus", "free_gpus", "largest_free_gpus", "largest_gpus"),
        *("asked", "limit", "together", "free", "largest"),
    ],
    2,
)


@pytest.mark.parametrize("code", sorted(REASONS))
def test_every_code_has_a_whole_sentence_and_what_to_do(code: str) -> None:
    message = sentence(code, FIGURES)
    assert message.endswith(".")
    assert "%" not in message
    assert code == "" or hint(code, FIGURES).endswith(".")


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
    assert codes - {""} == set(REASONS) - {""}


def test_no_code_means_two_things() -> None:
    assert not set(REASONS) & set(explain.BY_CODE)


def test_cpu_and_memory_are_told_in_cores_and_gib() -> None:
    assert "1.5 CPU cores" in sentence("no_free_cpu", {"asked": 1500, "free": 0})
    assert "at most 0 free" in sentence("no_free_cpu", {"asked": 1500, "free": 0})
    assert "12345 GiB" in sentence("above_memory_limit", {"asked": 12345 * 1024, "limit": 100})
    assert "20 CPU cores" in sentence("above_cpu_limit", {"asked": 20_000, "limit": 100})


def test_a_reason_of_the_cluster_is_told_in_its_words() -> None:
    code = next(code for code in explain.BY_CODE)
    assert not reasons.knows(code)
    assert sentence(code, {"raw": "x"}) == explain.sentence(code, {"raw": "x"})


def test_how_many_are_ahead_is_told() -> None:
    assert in_queue("behind_others", {}, 4)["message"] == "4 requests are ahead of yours."
    assert in_queue("behind_others", {}, 1)["message"] == "1 request is ahead of yours."
