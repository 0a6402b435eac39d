"""The start script of distributed jobs in real shells: ranks, their exit code, signals, and what torchrun is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs.start import FOLDER

AS_JOB_SH = f'say() {{ echo "job: $*" >&2; }}; . {FOLDER / "distributed.sh"}; distributed "$@"'
SHELLS = ("sh", "bash")
SHOWS = "import os; os.write(1, ('%(RANK)s %(LOCAL_RANK)s %(NODE_RANK)s\\n' % os.environ).encode())"
ONE_FAILS = "import os, sys, time\nif os.environ['LOCAL_RANK'] == '2': {how}\ntime.sleep(60)"
ENDS_WELL = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"told\\n"), os._exit(0)))
os.write(1, b"up\\n")
time.sleep(60)
"""


def command(shell: str, *words: str) -> list[str]:
    return [shell, "-c", AS_JOB_SH, shell, *words]


def environ(framework: str = "ranks", **more: str) -> dict[str, str]:
    distributed = {"BERTH_FRAMEWORK": framework, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    return {**os.environ, **distributed, "LOCAL_WORLD_SIZE": "4", "JOB_COMPLETION_INDEX": "1", **more}


def run(shell: str, code: str) -> subprocess.CompletedProcess[str]:
    words = command(shell, sys.executable, "-c", code)
    return subprocess.run(words, env=environ(), capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("shell", SHELLS)
def test_each_process_has_its_rank(shell: str) -> None:
    done = run(shell, SHOWS)
    assert (done.returncode, sorted(done.stdout.split("\n"))) == (0, ["", "4 0 1", "5 1 1", "6 2 1", "7 3 1"])


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("how", "code"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", 137)])
def test_the_first_that_fails_ends_all_and_gives_its_code(shell: str, how: str, code: int) -> None:
    began = time.monotonic()
    done = run(shell, ONE_FAILS.format(how=how))
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("shell", SHELLS)
def test_all_are_told_to_end_and_may_end_well(shell: str) -> None:
    words = command(shell, sys.executable, "-c", ENDS_WELL)
    with subprocess.Popen(words, env=environ(), stdout=subprocess.PIPE, text=True) as ranks:
        assert ranks.stdout is not None
        assert [ranks.stdout.readline() for _ in range(4)] == ["up\n"] * 4
        ranks.send_signal(signal.SIGTERM)
        assert sorted(ranks.stdout.read().split()) == ["told"] * 4
    assert ranks.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_a_signal_is_lost_at_no_moment_of_a_start(shell: str) -> None:
    for milliseconds in range(0, 80, 2):
        with subprocess.Popen(command(shell, "sleep", "600"), env=environ()) as ranks:
            time.sleep(milliseconds / 1000)
            ranks.terminate()
            assert ranks.wait(15) in (143, -signal.SIGTERM)


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        (("python", "train.py", "--lr", "1"), "--no_python python train.py --lr 1"),
        (("train.py", "--lr", "1"), "train.py --lr 1"),
        (("-m", "package.train"), "-m package.train"),
    ],
)
def test_torchrun_is_told_of_all_nodes(tmp_path: Path, words: tuple[str, ...], taken: str) -> None:
    done = torchrun(tmp_path, *words)
    options = "--nnodes 2 --nproc_per_node 4 --node_rank 1 --master_addr 127.0.0.1 --master_port 29500"
    assert done == f"1 {options} {taken}"


def test_a_command_that_is_torchrun_itself_is_left_as_it_is(tmp_path: Path) -> None:
    assert torchrun(tmp_path, "torchrun", "--max-restarts", "1", "train.py") == "1 --max-restarts 1 train.py"


def torchrun(folder: Path, *words: str) -> str:
    """Return what torchrun was given: the rank of its node in the environment, and its arguments."""
    (folder / "torchrun").write_text('#!/bin/sh\necho "$PET_NODE_RANK $*"\n')
    (folder / "torchrun").chmod(0o755)
    told = {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "4", "PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.run(
        command("sh", *words), env=environ("torchrun", **told), capture_output=True, text=True, check=True
    ).stdout.strip()
