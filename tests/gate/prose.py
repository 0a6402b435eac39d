"""Check of how plain docstrings read: the first word of each.

A reader who looks for what a function does finds it in the first word: "Return", "Nodes of the pool". Docstrings that
open with a preposition, a pronoun or a question word make the reader guess. Only openings are judged here.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

POOR_OPENINGS = frozenset(
    """
    above after again all also although among and another any anybody anyone anyway as at because before
    behind below beneath beside between both but by each either else even every everybody everyone everything few for
    from he here how however if in inside into it its just least less many mine more most neither never no nobody none
    nor not nothing now of on once one ones only or other others our ours outside over same she since so some somebody
    someone something still such than that their theirs them then there these they this those though through to under
    unless until up upon we what whatever when whenever where wherever whether which whichever while who whoever whom
    whose why with within without yet you
    """.split()  # noqa: SIM905
)
PARTS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)
"""What may hold a function or a class; to look into expressions too takes twice as long."""


def openings(file: Path) -> Iterator[tuple[int, str]]:
    """Yield line and first word of each docstring."""
    left: list[ast.AST] = [ast.parse(file.read_text())]
    while left:
        node = left.pop()
        left += [inner for inner in ast.iter_child_nodes(node) if isinstance(inner, BLOCKS)]
        if isinstance(node, PARTS) and (text := ast.get_docstring(node)):
            word = re.match(r"[\W_]*([A-Za-z']+)", text)
            yield node.body[0].lineno, word[1].lower() if word else ""


def is_poor(word: str) -> bool:
    return word in POOR_OPENINGS
