"""Rules about the code itself: plain docstrings, and folders in which a reader finds a file."""

import ast
import re
import subprocess
from collections import Counter
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.gate.prose import is_poor, openings
from tests.gate.rooms import ROOMS

ROOT = Path(__file__).parents[2]
MOST_FILES = 25
"""Python files in one folder; more hide each other."""
MOST_POOR = 0.05
"""Share of a room's docstrings."""

NAMES = r"\w+(?: as \w+)?(?:, \w+(?: as \w+)?)*"
IMPORTED = re.compile(rf"^\s*from ((?:{'|'.join((*ROOMS, 'tests'))})[\w.]*) import ({NAMES})", re.MULTILINE)


def python_files() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [Path(name) for name in names if (ROOT / name).is_file() and "migrations" not in Path(name).parts]


def test_no_folder_has_more_files_than_a_reader_can_look_through() -> None:
    folders = Counter(file.parent for file in python_files())
    assert {folder: files for folder, files in folders.items() if files > MOST_FILES} == {}


class Imported(NamedTuple):
    file: Path
    """A file below tests/."""
    module: str
    name: str
    in_string: bool
    """A program in a string imports it."""


@cache
def imported() -> list[Imported]:
    """Return what the files below tests/, and the programs in their strings, import of the rooms and of tests/."""
    found = []
    for file in (file for file in python_files() if file.parts[0] == "tests"):
        for node in ast.walk(ast.parse((ROOT / file).read_text())):
            if isinstance(node, ast.ImportFrom):
                found += [Imported(file, node.module or "", name.name, False) for name in node.names]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                for module, names in IMPORTED.findall(node.value):
                    one_by_one = [name.split(" as ")[0].strip() for name in names.split(",")]
                    found += [Imported(file, module, name, True) for name in one_by_one]
    return found


def imports_of_tests() -> list[tuple[Path, str]]:
    """Return each file below tests/ with each dotted name of tests/ that it imports."""
    return [
        (one.file, f"{one.module}.{one.name}")
        for one in imported()
        if not one.in_string and one.module.startswith("tests.")
    ]


def test_a_rooms_tests_import_helpers_of_their_own_room_or_of_all_rooms() -> None:
    """Helpers for several rooms are in tests/shared or in tests itself."""
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    foreign = [
        f"{file}: {name}"
        for file, name in imports_of_tests()
        if file.parts[1] in (*ROOMS, "shared") and name.split(".")[1] in folders - {file.parts[1], "shared"}
    ]
    assert foreign == []


def test_nothing_imports_a_file_of_tests() -> None:
    """Helpers for two test files have a module of their own."""
    assert [f"{file}: {name}" for file, name in imports_of_tests() if ".test_" in name] == []


def test_docstrings_open_with_a_verb_or_a_noun() -> None:
    seen, poor = Counter[str](), dict[str, list[str]]()
    for file in python_files():
        for line, word in openings(ROOT / file):
            seen[file.parts[0]] += 1
            if is_poor(word):
                poor.setdefault(file.parts[0], []).append(f"{file}:{line}: {word}")
    assert {room: lines for room, lines in poor.items() if len(lines) > MOST_POOR * seen[room]} == {}


@pytest.mark.parametrize(
    ("text", "poor"),
    [
        ("Return it.", []),
        ("Nodes of it.", []),
        ("Whoever waits.", ["whoever"]),
        ("`Of` it.", ["of"]),
        ("...", []),
    ],
)
def test_the_first_word_of_a_docstring_is_judged(tmp_path: Path, text: str, poor: list[str]) -> None:
    (file := tmp_path / "file.py").write_text(f'def act():\n    """{text}"""\n')
    assert [word for _line, word in openings(file) if is_poor(word)] == poor


def is_there(module: str, name: str) -> bool:
    try:
        return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None
    except ModuleNotFoundError:
        return False


def test_programs_in_strings_import_what_is_there() -> None:
    """Such programs run in other processes, some only in suites that take long."""
    found = [one for one in imported() if one.in_string]
    assert len(found) > 20
    assert [one for one in found if not is_there(one.module, one.name)] == []
