"""Tests of parts under supervisor: started in order, restarted when killed, all gone at the end."""

import configparser
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from devcluster.testing.waiting import until
from portal.up import leftovers
from portal.up.plan import Program
from portal.up.processes import Supervisor, configuration, end_leftovers
from portal.up.refusal import Refusal
from portal.up.state import State
from tests.small_disk import filled, small_disk

# Records that it stops, and has a child that a SIGKILL of it would leave behind. Stop it only once the child exists.
PART = """
import os, signal, sys, time
from pathlib import Path
name, leader = sys.argv[1], os.getpid()
def stop(*_):
    if os.getpid() == leader:
        with Path(os.environ["TOLD"]).open("a") as told:
            told.write(name + " ")
    sys.exit()
signal.signal(signal.SIGTERM, stop)
os.fork()
time.sleep(600)
"""
STARTED_SECONDS = 60  # on a busy machine


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    state = State.make(tmp_path / "state")
    yield state
    end_leftovers(state, ["one", "two"])


@pytest.fixture
def told(tmp_path: Path) -> Path:
    return tmp_path / "told"


@contextmanager
def supervised(state: State, folder: Path, *programs: Program, **environ: str) -> Iterator[Supervisor]:
    everything = {**os.environ, "BERTH_STATE_DIR": str(state.folder), **environ}
    with Supervisor(state, folder, programs, everything) as running:
        running.wait_until_up()
        yield running


@pytest.fixture
def supervisor(state: State, told: Path, tmp_path: Path) -> Iterator[Supervisor]:
    script = tmp_path / "part.py"
    script.write_text(PART)
    programs = [Program(name, name, (sys.executable, str(script), name), {}) for name in ("one", "two")]
    with supervised(state, tmp_path, *programs, TOLD=str(told)) as running:
        for program in programs:
            running.start(program.name)
            running.wait_for(program.name, partial(is_whole, state, program.name), STARTED_SECONDS)
        yield running


def children(state: State, part: str) -> int:
    """Return the number of processes of the part."""
    return len(leftovers.left(state.folder, state.records, [part]))


def is_whole(state: State, part: str) -> bool:
    return children(state, part) == 2


def test_parts_stop_in_the_reverse_order_of_their_start_and_leave_nothing(
    state: State, supervisor: Supervisor, told: Path
) -> None:
    supervisor.__exit__()
    assert told.read_text().split() == ["two", "one"]
    assert leftovers.left(state.folder, state.records, ["supervisor", "one", "two"]) == set()


@pytest.mark.slow
def test_a_killed_part_is_started_again_and_its_orphans_are_ended(
    state: State, supervisor: Supervisor
) -> None:
    before = leftovers.left(state.folder, state.records, ["one"])
    leader = leftovers.recorded(state.records, "one")
    assert leader is not None
    os.kill(leader.pid, signal.SIGKILL)
    until(lambda: leftovers.recorded(state.records, "one") not in (None, leader))
    until(lambda: is_whole(state, "one"))
    assert not before & leftovers.left(state.folder, state.records, ["one"])


def test_when_supervisor_is_killed_nothing_of_its_parts_stays(state: State, supervisor: Supervisor) -> None:
    leader = leftovers.recorded(state.records, "supervisor")
    assert leader is not None
    os.kill(leader.pid, signal.SIGKILL)
    until(lambda: not supervisor.is_running)
    supervisor.__exit__()
    assert leftovers.left(state.folder, state.records, ["supervisor", "one", "two"]) == set()


@pytest.mark.slow
def test_a_part_that_cannot_start_is_refused_with_its_last_words(state: State, tmp_path: Path) -> None:
    broken = Program("one", "one", (sys.executable, "-c", "raise SystemExit('the disk is full')"), {})
    with supervised(state, tmp_path, broken) as running:
        running.start("one")
        with pytest.raises(Refusal, match="the disk is full"):
            running.wait_for("one", lambda: False, STARTED_SECONDS)


@pytest.mark.slow
def test_a_part_killed_in_its_first_second_is_waited_for_again(state: State, tmp_path: Path) -> None:
    before, serves = tmp_path / "before", tmp_path / "serves"
    words = f"test -e {before} || {{ touch {before}; kill -KILL $$; }}; touch {serves}; exec sleep 60"
    killed = Program("one", "one", ("sh", "-c", words), {})
    with supervised(state, tmp_path, killed) as running:
        running.start("one")
        running.wait_for("one", serves.exists, STARTED_SECONDS)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_parts_run_on_and_are_started_again_while_the_disk_is_full(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", mib=1) as disk:
        state = State.make(disk / "state")
        talks = Program("one", "one", ("sh", "-c", "while echo words; do sleep 0.01; done"), {})
        ends = Program("two", "two", ("sh", "-c", "sleep 2"), {})
        with supervised(state, tmp_path, talks, ends) as running:
            running.start("one")
            running.start("two")
            with filled(disk):
                first = running.states()["two"]["pid"]
                until(lambda: running.states()["two"]["pid"] not in (first, 0))
                assert running.statename("one") == "RUNNING"


@pytest.mark.slow
def test_a_part_that_failed_to_start_many_times_starts_when_what_it_needs_is_back(
    state: State, tmp_path: Path
) -> None:
    needed, serves = tmp_path / "needed", tmp_path / "serves"
    words = f"test -e {needed} && touch {serves} && exec sleep 60"
    failing = Program("one", "one", ("sh", "-c", words), {})
    with supervised(state, tmp_path, failing) as running:
        running.start("one")
        until(lambda: running.statename("one") == "FATAL")
        needed.touch()
        running.start_given_up()
        until(serves.exists)


def test_words_with_blanks_quotes_and_percent_signs_reach_the_program(tmp_path: Path) -> None:
    command = ("/a b/python", "-c", "print('50% \"done\"')")
    text = configuration(State(tmp_path), tmp_path, [Program("web", "portal", command, {"KEY": "100%"})])
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text.replace("%%", "%"))
    section = parser["program:web"]
    assert "'/a b/python'" in section["command"]
    assert "50% " in section["command"]
    assert 'KEY="100%"' in section["environment"]


def test_the_configuration_holds_no_secret(tmp_path: Path) -> None:
    text = configuration(
        State(tmp_path), tmp_path, [Program("web", "portal", ("web",), {"BERTH_ROLE": "web"})]
    )
    assert "SECRET" not in text
    assert "DATABASE_URL" not in text
