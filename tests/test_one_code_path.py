"""Test that one code path drives all clusters: only the trial's own files name the embedded cluster."""

from __future__ import annotations

import subprocess

from portal.environment import BASE_DIR

NAME = "devcluster"
ITS_PLACES = (f"packages/{NAME}/", "portal/up/", "tests/", "docs/")
ITS_FILES = {"Makefile", "pyproject.toml", "README.md", "ARCHITECTURE.md", "CHANGELOG.md"}


def test_nobody_else_names_the_embedded_cluster() -> None:
    command = ["git", "grep", "--untracked", "-Ili", NAME]
    named = subprocess.run(command, cwd=BASE_DIR, capture_output=True, text=True, check=True).stdout.split()
    assert f"packages/{NAME}/src/{NAME}/__main__.py" in named  # the search itself works
    assert [path for path in named if not path.startswith(ITS_PLACES) and path not in ITS_FILES] == []
