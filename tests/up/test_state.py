"""Tests of the state directory: private, held by one `make up` at a time, and found through run.env."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from portal.up.refusal import Refusal
from portal.up.state import State


def test_a_second_make_up_on_the_same_state_is_refused_with_the_first_ones_pid(tmp_path: Path) -> None:
    state = State.make(tmp_path / "state")
    refusal = pytest.raises(Refusal, match=r"already runs on .*\(pid \d+\).*BERTH_STATE_DIR")
    with state.held(), refusal, state.held():
        pass


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    state = State.make(tmp_path / "state")
    script = f"""
import os, signal
from pathlib import Path
from portal.up.state import State
with State(Path({str(state.folder)!r})).held():
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
    with state.held():
        pass


def test_the_run_file_is_private_and_survives_being_read_back(tmp_path: Path) -> None:
    state = State.make(tmp_path / "state")
    values = {"DATABASE_URL": "postgres://u:p=%2F@h/db?x=1", "BERTH_SECRET_KEY": "a=b#c"}
    state.write_run_file(values)
    assert state.read_run_file() == values
    assert stat.S_IMODE(state.run_file.stat().st_mode) == 0o600


def test_an_existing_folders_mode_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o755)
    state = State.make(tmp_path / "mine")
    assert stat.S_IMODE(state.folder.stat().st_mode) == 0o755
    assert stat.S_IMODE(state.logs.stat().st_mode) == 0o700


def test_sockets_move_to_a_short_folder_where_the_path_is_too_long(tmp_path: Path) -> None:
    with State.make(tmp_path / "short").sockets() as near:
        assert near == tmp_path / "short" / "run"
    with State.make(tmp_path / ("long" * 25)).sockets() as far:
        assert len(str(far)) < 60
        assert far.is_dir()
    assert not far.exists()
