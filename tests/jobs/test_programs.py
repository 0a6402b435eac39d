"""Program of a job: exactly one of three, and what a notebook becomes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jobs import programs

JOB = "1a2b3c4d-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("command", "script", "notebook", "faulty"),
    [
        (["true"], "", "", None),
        ([], "true", "", None),
        ([], "", "a.ipynb", None),
        ([], "", "", "command"),
        (["true"], "true", "", "command"),
        (["true"], "", "a.ipynb", "command"),
        (["a\0b"], "", "", "command"),
        ([], "a\0b", "", "script"),
        ([], "", "a\0.ipynb", "notebook"),
        ([], "", "train.py", "notebook"),
        ([], "x" * (programs.LONGEST_SCRIPT_BYTES + 1), "", "script"),
    ],
)
def test_exactly_one_program_is_given(
    command: list[str], script: str, notebook: str, faulty: str | None
) -> None:
    assert list(programs.check(command, script, notebook)) == ([faulty] if faulty else [])


@pytest.mark.parametrize("path", ["train.ipynb", "work/a b.ipynb", "-rf.ipynb", "/data/x.ipynb"])
def test_the_notebook_is_found_again_in_its_command(path: str) -> None:
    assert programs.notebook_of(programs.of_notebook(path)) == path
    assert programs.notebook_of(["python", "train.py"]) == ""


@pytest.mark.parametrize("tool", ["papermill", "jupyter"])
def test_its_command_runs_what_the_image_has_and_names_the_result(tmp_path: Path, tool: str) -> None:
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name in ("dirname", "basename", "sh"):
        (binaries / name).symlink_to(f"/bin/{name}" if Path(f"/bin/{name}").exists() else f"/usr/bin/{name}")
    fake = binaries / tool
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    fake.chmod(0o755)
    environment = {
        "PATH": str(binaries),
        "BERTH_JOB": JOB,
        "BERTH_INDEX": "3",
        "BERTH_PARAMETERS": '{"lr": 0.1}',
    }
    command = programs.of_notebook("work/my train.ipynb")
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    told = ran.stdout.splitlines()
    assert told[-1] == "./work/my train.ipynb" or tool == "papermill"
    if tool == "papermill":
        assert told == [
            "--cwd",
            "./work",
            "-y",
            '{"lr": 0.1}',
            "./work/my train.ipynb",
            "./work/my train-1a2b3c4d-3.ipynb",
        ]
    else:
        assert told[-2] == "my train-1a2b3c4d-3.ipynb"
