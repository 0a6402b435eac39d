"""Tests that each action of the audit trail has a sentence, and each sentence an action."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from accounts.trail import trail_words

ROOT = Path(__file__).parents[2]
ROOMS = ("portal", "monitoring", "workspaces", "jobs", "storage", "quotas", "clusters", "accounts")
RECORDED_BY_ADMIN = re.compile(r"\w+\.(create|change|delete)")
"""Actions of the admin's pages (`accounts/admin/recorded.py`): one per model and verb."""
RECORDED_BY_THE_DATABASE = {"trail.forgotten": "accounts/migrations/0008_trail_upkeep.py"}


@cache
def recorded() -> dict[str, str]:
    """Patterns of the actions that the code records, each with one place that does."""
    found: dict[str, str] = {}
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            text = file.read_text()
            for function in ast.walk(ast.parse(text)) if "audit.record" in text else ():
                if isinstance(function, ast.FunctionDef):
                    for action in actions(function):
                        found.setdefault(action, f"{file.relative_to(ROOT)}:{function.lineno}")
    return found


def actions(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the actions that a function passes to `audit.record`, with * for each part known only when it runs."""
    values = {
        target.id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "audit.record":
            yield from texts(node.args[1], values)


def texts(node: ast.expr, values: dict[str, ast.expr]) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in parts)
        case ast.IfExp(body=body, orelse=other):
            yield from texts(body, values)
            yield from texts(other, values)
        case ast.Name(id=name) if name in values:
            yield from texts(values[name], values)
        case _:
            yield "*"


def test_every_recorded_action_has_words() -> None:
    missing = {
        action: where
        for action, where in recorded().items()
        if not any(fnmatchcase(known, action) for known in trail_words.DONE)
    }
    assert missing == {}


def test_every_sentence_is_of_an_action_that_is_recorded() -> None:
    for action, where in RECORDED_BY_THE_DATABASE.items():
        assert f"'{action}'" in (ROOT / where).read_text()
    patterns = [action for action in recorded() if not action.startswith("*")] + [*RECORDED_BY_THE_DATABASE]
    unused = [
        known
        for known in trail_words.DONE
        if not RECORDED_BY_ADMIN.fullmatch(known) and not any(fnmatchcase(known, one) for one in patterns)
    ]
    assert unused == []


def test_every_kind_has_sentences() -> None:
    heads = {action.partition(".")[0] for action in trail_words.DONE}
    assert set(trail_words.KINDS) <= heads
