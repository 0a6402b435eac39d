"""Jobs of real processes on the trial cluster: checkpoints over a failure, a script, a sweep, cancellation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.jobs.asking import comes_to, submit
from tests.e2e.stack import Client, Stack, running

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

COUNTS = """
import os, pathlib, sys
checkpoint = pathlib.Path(os.environ["BERTH_CHECKPOINT_DIR"]) / "step"
step = int(checkpoint.read_text()) if checkpoint.exists() else 0
while step < 10:
    step += 1
    checkpoint.write_text(str(step))
    if step == 5:
        sys.exit(3)
pathlib.Path("result").write_text(f"{step} in attempt {os.environ['BERTH_ATTEMPT']}")
"""
SWEEPS = "import os; open(f\"lr-{os.environ['BERTH_PARAM_LR']}\", 'w').write('done')"


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running("jobs") as found:
        yield found


@pytest.fixture(scope="module")
def alice(stack: Stack) -> Client:
    return stack.client(stack.token("alice", "read", "jobs", "volumes"))


def test_a_job_goes_on_from_its_checkpoint_after_a_failure(stack: Stack, alice: Client) -> None:
    job = submit(alice, command=["python3", "-c", COUNTS])
    done = comes_to(alice, job, "succeeded")
    assert [(one["exit_code"], one["counted"]) for one in done["attempts"]] == [(3, True), (0, False)]
    job = submit(alice, command=["sh", "-c", "grep -q '^10 in attempt 2$' result"], retries=0)
    comes_to(alice, job, "succeeded")


def test_a_script_runs_with_its_secrets(stack: Stack, alice: Client) -> None:
    script = '#!/bin/sh\ntest "$KEY" = hush && test "$BERTH_JOB" != \'\'\n'
    job = submit(alice, script=script, secret_env={"KEY": "hush"}, retries=0)
    comes_to(alice, job, "succeeded")
    _status, manifest = alice("GET", f"jobs/{job}/manifest/")
    assert "hush" not in str(manifest)


def test_a_sweep_of_twenty_runs_every_point_once(stack: Stack, alice: Client) -> None:
    points = [round(0.01 * number, 2) for number in range(1, 21)]
    job = submit(
        alice, command=["python3", "-c", SWEEPS], sweep={"parameters": {"lr": points}, "parallelism": 4}
    )
    done = comes_to(alice, job, "succeeded", 300)
    assert done["indices"] == {"total": 20, "succeeded": 20, "failed": 0, "active": 0}
    assert len(done["attempts"]) == 20
    checks = " && ".join(f"test -e lr-{point}" for point in points)
    comes_to(alice, submit(alice, command=["sh", "-c", checks], retries=0), "succeeded")


def test_a_cancelled_job_ends_its_program(stack: Stack, alice: Client) -> None:
    job = submit(alice, command=["sleep", "1000"])
    comes_to(alice, job, "running")
    assert alice("POST", f"jobs/{job}/cancel/")[0] == 202
    comes_to(alice, job, "cancelled")
    assert stack.rows("SELECT 1 FROM quotas_claim WHERE holder_id = %s AND state <> 'released'", job) == []


WRITES = "import os; open('/volumes/corpus/part', 'w').write('42'); print('berth: progress=0.5 rows=42', flush=True)"


def test_readers_begin_by_themselves_with_the_version_that_a_job_published(
    stack: Stack, alice: Client
) -> None:
    body = {"tenant": "demo", "name": "corpus", "kind": "dataset", "size_mib": 64}
    status, volume = alice("POST", "volumes/", body)
    assert status == 201, volume
    writes = {"volume": volume["id"]}
    writer = submit(alice, name="prepare", command=["python3", "-c", WRITES], writes=writes, retries=0)
    mount = {"volume": volume["id"], "path": "/data", "version": "latest"}
    reads = ["sh", "-c", 'test "$(cat /data/part)" = 42 && ! touch /data/new']
    after = [{"job": writer}]
    readers = [
        submit(alice, name=f"train {number}", command=reads, volumes=[mount], after=after, retries=0)
        for number in range(3)
    ]
    failing = submit(alice, name="fails", command=["false"], after=after, retries=0)
    never = submit(alice, name="never", command=["true"], after=[{"job": failing}])
    written = comes_to(alice, writer, "succeeded")
    assert written["writes"]["version"]["number"] == 1
    for reader in readers:
        done = comes_to(alice, reader, "succeeded", 180)
        assert [(one["name"], one["version"]) for one in done["volumes"]] == [("corpus", 1)]
    assert comes_to(alice, never, "cancelled")["failure"]["code"] == "not_started"
    reported = until("its line is read", lambda: alice("GET", f"jobs/{writer}/metrics/")[1]["metrics"])
    assert reported == {"rows": 42.0}
