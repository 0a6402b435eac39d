"""The gate's plugin in a pytest of its own, on planted tests."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
ONCE = """
import pathlib, pytest
@pytest.mark.parametrize("number", range({count}))
def test_red_once(number):
    seen = pathlib.Path(f"seen-{{number}}")
    if not seen.exists():
        seen.touch()
        assert False, "planted"
"""
ALWAYS = "def test_always_red():\n    assert False, 'planted'\n"
TEARDOWN = """
import pathlib, pytest
@pytest.fixture
def given():
    yield
    if not pathlib.Path("seen").exists():
        pathlib.Path("seen").touch()
        raise ValueError("planted")
def test_red_in_its_teardown(given):
    pass
"""
GREEN = "def test_green():\n    pass\n"


def run(folder: Path, text: str, *options: str) -> tuple[int, str]:
    """Return the exit code and the output of a gated run of these tests."""
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\n")
    (folder / "test_planted.py").write_text(text + GREEN)
    command = [sys.executable, "-m", "pytest", "-p", "tests.gate.plugin", *options]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout


def closing_line(output: str) -> str:
    return output.strip().splitlines()[-1]


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "2")], ids=["one process", "two workers"])
def test_red_once_is_told_as_flaky_and_the_run_is_green(tmp_path: Path, options: tuple[str, ...]) -> None:
    code, output = run(tmp_path, ONCE.format(count=1), *options)
    assert code == 0, output
    assert "FLAKY test_planted.py::test_red_once[0]" in output
    assert "1 passed, 1 flaky" in closing_line(output)


def test_red_twice_fails_the_run(tmp_path: Path) -> None:
    code, output = run(tmp_path, ONCE.format(count=1) + ALWAYS)
    assert code == 1
    assert "1 failed, 1 passed, 1 flaky" in closing_line(output)


def test_a_test_red_in_its_teardown_alone_is_run_again_too(tmp_path: Path) -> None:
    code, output = run(tmp_path, TEARDOWN)
    assert code == 0, output
    assert "FLAKY test_planted.py::test_red_in_its_teardown" in output


def test_a_suite_far_over_its_budget_fails(tmp_path: Path) -> None:
    code, output = run(tmp_path, "", "--budget=0.0001")
    assert code == 1, output
    assert "1 passed" in closing_line(output)


def test_a_file_that_cannot_be_collected_fails_the_run(tmp_path: Path) -> None:
    code, _ = run(tmp_path, "import nothing_of_that_name\n")
    assert code != 0
