import subprocess
from pathlib import Path

import pytest

from tests.gate.fingerprint import PACKAGE, PASSED, main

STORE = f"{PACKAGE}/src/store.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with files of the trial cluster that passed."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for folder in ("src", "tests"):
        (tmp_path / PACKAGE / folder).mkdir(parents=True)
    (tmp_path / STORE).write_text("one")
    (tmp_path / "other.py").write_text("one")
    main("write", tmp_path)
    return tmp_path


def test_unchanged_files_are_not_due(tree: Path) -> None:
    assert main("check", tree) == 0


def test_other_files_do_not_count(tree: Path) -> None:
    (tree / "other.py").write_text("two")
    assert main("check", tree) == 0


@pytest.mark.parametrize("name", [STORE, f"{PACKAGE}/tests/test_new.py", PASSED])
def test_a_changed_or_new_file_makes_its_tests_due(tree: Path, name: str) -> None:
    (tree / name).write_text("two")
    assert main("check", tree) == 1


def test_a_removed_file_makes_its_tests_due(tree: Path) -> None:
    (tree / STORE).unlink()
    assert main("check", tree) == 1


def test_tests_that_never_passed_are_due(tree: Path) -> None:
    (tree / PASSED).unlink()
    assert main("check", tree) == 1
