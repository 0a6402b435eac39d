"""The table of transitions: what it refuses, that it is drawn, and that nothing goes around it."""

from __future__ import annotations

import ast
from itertools import product
from pathlib import Path

import pytest

from workspaces.models import STEPS, Desired, Ending, Phase, Step, Workspace
from workspaces.state.transitions import TABLE, ImpossibleTransition, Move, advance_step, end_by, move

ROOT = Path(__file__).parents[3]
DRAWING = ROOT / "docs" / "development" / "states.md"
FIELDS = {"desired", "phase", "ending", "step"}
ENDINGS = ("", *Ending)


def in_state(desired: str, phase: str, ending: str) -> Workspace:
    return Workspace(desired=desired, phase=phase, ending=ending, step=Step.REQUEST)


def state_of(workspace: Workspace) -> tuple[str, str, str]:
    return workspace.desired, workspace.phase, workspace.ending


def reachable() -> set[tuple[str, str, str]]:
    """Return the states that follow from a launch by any moves."""
    found, new = set[tuple[str, str, str]](), {(str(Desired.RUNNING), str(Phase.WAITING), "")}
    while new:
        found |= new
        last, new = new, set()
        for state, wanted in product(last, Move):
            workspace = in_state(*state)
            try:
                move(workspace, wanted)
            except ImpossibleTransition:
                assert state_of(workspace) == state
            else:
                new |= {state_of(workspace)} - found
    return found


def test_every_phase_and_ending_is_reached_and_every_move_is_of_use() -> None:
    states = reachable()
    assert {phase for _, phase, _ in states} == set(Phase)
    assert {ending for _, _, ending in states} == set(ENDINGS)
    for rule in TABLE.values():
        assert any(d in rule.desired and p in rule.phases and e in rule.endings for d, p, e in states)


def test_nothing_is_ready_or_starts_that_is_not_wanted_or_is_being_ended() -> None:
    for desired, phase, ending in reachable():
        if phase == Phase.READY:
            assert not ending
        if phase == Phase.STOPPED:
            assert desired != Desired.RUNNING or not ending


@pytest.mark.parametrize("ending", Ending)
def test_each_ending_has_its_move(ending: Ending) -> None:
    assert TABLE[end_by(ending)].to_ending == ending


def test_steps_follow_each_other_and_end_with_the_last() -> None:
    workspace = in_state(Desired.RUNNING, Phase.WAITING, "")
    for step in STEPS[1:]:
        advance_step(workspace)
        assert workspace.step == step
    with pytest.raises(ImpossibleTransition):
        advance_step(workspace)


def test_only_the_table_changes_the_state() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for room in ("workspaces", "monitoring", "portal")
        for path in (ROOT / room).rglob("*.py")
        if path.name != "transitions.py" and "migrations" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in FIELDS
    ]
    assert found == []


def test_the_table_is_drawn_as_it_is() -> None:
    assert rows() in DRAWING.read_text(), f"{DRAWING} should hold:\n{rows()}"


def rows() -> str:
    """Return the table as Markdown."""
    head = "| transition | made by | wanted before | phases before | ends a run before | wanted | phase | ending |\n"
    lines = [head, "| --- " * 8 + "|\n"]
    for wanted, rule in TABLE.items():
        before = [_named(rule.desired, Desired), _named(rule.phases, Phase), _ends(rule.endings)]
        after = [str(rule.to_desired or ""), str(rule.to_phase or ""), _cleared(rule.to_ending)]
        lines.append(f"| {' | '.join([str(wanted), rule.made_by, *before, *after])} |\n")
    return "".join(lines)


def _named(values: object, all_of: type[Desired] | type[Phase]) -> str:
    named = [str(value) for value in all_of if value in values]  # type: ignore[operator]
    return "any" if len(named) == len(all_of) else ", ".join(named)


def _ends(endings: object) -> str:
    none, some = "" in endings, [str(ending) for ending in Ending if ending in endings]  # type: ignore[operator]
    if not some:
        return "no"
    left_out = sorted(set(Ending) - set(some))
    return ("any" if none else "yes") + (f", but {', '.join(left_out)}" if left_out else "")


def _cleared(ending: str | None) -> str:
    return "" if ending is None else ending or "none"
