import pytest

from tests.gate.verdict import MOST_FLAKY, allowed, clock, judge

QUICK = {"seconds": 100.0, "budget": 300.0, "pace": 1.0}


def test_a_run_without_red_tests_passes() -> None:
    assert judge({}, red=0, **QUICK) == ((), ())


def test_a_test_that_is_green_alone_is_flaky_and_the_run_passes() -> None:
    assert judge({"a": True}, red=1, **QUICK) == (("a",), ())


def test_a_test_that_is_red_twice_fails_the_run() -> None:
    verdict = judge({"a": True, "b": False}, red=2, **QUICK)
    assert verdict.flaky == ("a",)
    assert len(verdict.faults) == 1


def test_more_flaky_tests_than_let_pass_fail_the_run() -> None:
    names = [str(number) for number in range(MOST_FLAKY + 1)]
    assert judge(dict.fromkeys(names[:MOST_FLAKY], True), red=MOST_FLAKY, **QUICK).faults == ()
    assert judge(dict.fromkeys(names, True), red=MOST_FLAKY + 1, **QUICK).faults


def test_red_tests_that_were_not_tried_again_fail_the_run() -> None:
    assert judge({}, red=100, **QUICK).faults


@pytest.mark.parametrize(
    ("seconds", "pace", "fails"),
    [(449, 1, False), (451, 1, True), (451, 0.5, True), (449, 0.5, False), (899, 2, False), (901, 2, True)],
)
def test_a_suite_fails_at_one_and_a_half_times_its_budget(seconds: float, pace: float, fails: bool) -> None:
    assert bool(judge({}, red=0, seconds=seconds, budget=300, pace=pace).faults) is fails


def test_a_run_without_a_budget_may_take_any_time() -> None:
    assert judge({}, red=0, seconds=1e6, budget=None, pace=1).faults == ()
    assert allowed(300, 1) == 450


def test_a_duration_is_shown_in_minutes() -> None:
    assert clock(245.9) == "4:05"
