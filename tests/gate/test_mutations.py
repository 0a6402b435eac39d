"""The mutation spot check itself: its faults still apply, and pytest's answers are judged correctly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.gate import mutations
from tests.gate.mutations import MUTATIONS, ROOT, Result, judge, stale


def test_every_fault_still_applies() -> None:
    assert stale() == []


def test_each_has_a_name_of_its_own_and_tests_that_are_there() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
    assert [test for one in MUTATIONS for test in one.tests if not (ROOT / test).exists()] == []


@pytest.mark.parametrize("text", ["", "twice twice"], ids=["gone", "twice"])
def test_a_fault_whose_text_is_not_there_exactly_once_is_named(tmp_path: Path, text: str) -> None:
    one = replace(MUTATIONS[0], file="product.py", old="twice")
    (tmp_path / "product.py").write_text(text)
    lost = replace(one, name="lost", file="nowhere.py")
    assert stale([one, lost], tmp_path) == [one.name, "lost"]
    (tmp_path / "product.py").write_text("twice is once")
    assert stale([one], tmp_path) == []


@pytest.mark.parametrize(
    ("code", "output", "verdict", "failed"),
    [
        (0, "3 passed", "NOT CAUGHT", ""),
        (1, "..F\nFAILED tests/a.py::test_b - assert 0\n1 failed", "caught", "tests/a.py::test_b"),
        (2, "FAILED tests/a.py::test_b\n!! stopping after 1 failures !!", "caught", "tests/a.py::test_b"),
        (2, "ERROR tests/a.py - no such name\n1 error", "error 2", "tests/a.py"),
        (4, "no such file", "error 4", "no such file"),
        (5, "no tests ran", "error 5", "no tests ran"),
    ],
)
def test_only_a_test_that_failed_has_caught_a_fault(
    code: int, output: str, verdict: str, failed: str
) -> None:
    assert judge(code, output, 2.0) == Result(verdict, 2.0, failed)


def test_a_name_that_no_fault_has_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert mutations.main(["no such fault"]) == 1
    assert "No fault" in capsys.readouterr().out
