"""Many jobs while web, worker and watcher are killed at random: none is lost, none runs twice, all claims come back.

Each attempt takes a lock on a file of the shared home, which the kernel keeps while its process lives, and writes a
line when it begins and when it ends. The lines are judged, beside Berth's own rows.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from clusters import labels
from clusters.api import Api
from portal.up import leftovers
from tests.e2e.stack import Client, Stack, running, until
from tests.proof.killing import insist

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.long]

KILLED = ("web", "worker", "watcher")
# From the time when a part began to work until it is killed again.
MOST_SECONDS_UP = 10.0
# How long the cluster keeps a finished Job here, instead of an hour: the trial's API is slow with hundreds of them.
KEPT_SECONDS = 30
# Longest time in which nothing happens to any job.
STILL_SECONDS = 300
PROGRAM = """
import fcntl, os, pathlib, time
def tell(file, text):
    handle = os.open(folder / file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{job} {text}\\n".encode())
folder = pathlib.Path.home() / "once"
folder.mkdir(exist_ok=True)
job, attempt = os.environ["NUMBER"], os.environ["BERTH_ATTEMPT"]
lock = open(folder / f"{job}.lock", "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    tell("twice", attempt)
    raise SystemExit(0)
tell("begun", attempt)
time.sleep(0.5)
tell("ended", attempt)
"""
JUDGE = """
import collections, os, pathlib
folder, jobs = pathlib.Path.home() / "once", int(os.environ["JOBS"])
def told(file):
    return collections.Counter(line.split()[0] for line in (folder / file).read_text().splitlines())
each_once = {str(number): 1 for number in range(jobs)}
assert not (folder / "twice").exists(), told("twice")
assert told("begun") == each_once, told("begun")
assert told("ended") == each_once, told("ended")
"""
UNSETTLED = """
SELECT j.name, j.phase, j.message_code, j.message_data, j.dirty_since, p.phase AS part, p.ending, c.state,
  c.reason_code, a.members, a.ended_at
FROM jobs_job j JOIN jobs_part p ON p.job_id = j.id LEFT JOIN quotas_claim c ON c.id = p.run
LEFT JOIN jobs_attempt a ON a.run = p.run WHERE j.phase <> 'succeeded'
"""
NOT_RELEASED = "SELECT holder_id, state FROM quotas_claim WHERE state <> 'released'"
# Claims that were billed for another time than they were held.
BILLED_WRONG = """
SELECT c.id FROM quotas_claim c
LEFT JOIN (SELECT claim_id, sum(microseconds) AS held FROM quotas_ledgerentry GROUP BY claim_id) l ON l.claim_id = c.id
WHERE c.admitted_at IS NOT NULL
  AND round(extract(epoch FROM c.released_at - c.admitted_at) * 1000000) <> coalesce(l.held, 0)
"""


@contextmanager
def killed_at_random(stack: Stack, seed: int) -> Iterator[Counter[str]]:
    """Kill each part again and again with SIGKILL, while the body runs. Yield how often each was killed."""
    over, killed = threading.Event(), Counter[str]()

    def kill(part: str) -> None:
        rng = random.Random(f"{seed} {part}")
        while not over.wait(0.2):
            if is_up(stack, part):
                over.wait(rng.uniform(0, MOST_SECONDS_UP))
                stack.kill(part)
                killed[part] += 1

    killers = [threading.Thread(target=kill, args=[part]) for part in KILLED]
    for killer in killers:
        killer.start()
    try:
        yield killed
    finally:
        over.set()
        for killer in killers:
            killer.join()


def is_up(stack: Stack, part: str) -> bool:
    """Return True once the part has started to work: one of its processes was heard."""
    heard = {row["pid"] for row in stack.rows("SELECT pid FROM vitals_process WHERE part = %s", part)}
    return any(process.pid in heard for process in leftovers.marked(stack.folder, part))


def submit(alice: Client, number: int) -> str:
    body = {
        "tenant": "demo", "name": f"once-{number}", "image": "jupyter", "flavor": "cpu-small",
        "command": ["python3", "-c", PROGRAM], "env": {"NUMBER": str(number)}, "retries": 0, "notify": False,
    }  # fmt: skip
    return str(insist(alice, "POST", "jobs/", body, within_seconds=STILL_SECONDS)["id"])


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("jobs", [20, 500])
def test_no_job_is_lost_and_none_runs_twice_while_all_of_berth_is_killed(jobs: int) -> None:
    with running("once", BERTH_LAUNCHES_PER_MINUTE="10000") as stack:
        alice = stack.client(stack.token("alice", "read", "jobs"))
        with killed_at_random(stack, jobs) as killed:
            with ThreadPoolExecutor(4) as threads:
                ids = list(threads.map(lambda number: submit(alice, number), range(jobs)))
            all_are_over(stack, jobs)
        assert len(set(ids)) == jobs
        assert set(killed) == set(KILLED)
        until("the web process is there again", stack.is_ready, STILL_SECONDS)
        is_as_promised(stack, jobs)
        each_ran_once(alice, jobs)


def all_are_over(stack: Stack, jobs: int) -> None:
    """Wait until all jobs succeeded, as long as something happens to any of them."""
    before, changed_at = -1, time.monotonic()
    while (now := done(stack))[0] < jobs:
        if now[1] != before:
            before, changed_at = now[1], time.monotonic()
        still = time.monotonic() - changed_at
        assert still < STILL_SECONDS, (now, stack.rows(UNSETTLED))
        let_finished_expire(stack)
        time.sleep(1)


def let_finished_expire(stack: Stack) -> None:
    """Shorten the time for which the cluster keeps Jobs that have finished."""
    cluster = Api(stack.transport())
    for job in cluster.list("Job", labels={labels.MANAGED_BY: "berth"}):
        of = job["metadata"]
        if job["status"].get("conditions") and job["spec"]["ttlSecondsAfterFinished"] != KEPT_SECONDS:
            shorter = {"spec": {"ttlSecondsAfterFinished": KEPT_SECONDS}}
            cluster.merge_patch("Job", of["namespace"], of["name"], shorter)


def done(stack: Stack) -> tuple[int, int]:
    """Return how many jobs succeeded, and how many events there are."""
    over = stack.rows("SELECT count(*) AS count FROM jobs_job WHERE phase = 'succeeded'")
    return over[0]["count"], stack.rows("SELECT count(*) AS count FROM jobs_event")[0]["count"]


def each_ran_once(alice: Client, jobs: int) -> None:
    """Let another job read the lines in the home: there is no other way to them."""
    body = {
        "tenant": "demo", "name": "judge", "image": "jupyter", "flavor": "cpu-small", "retries": 0,
        "command": ["python3", "-c", JUDGE], "env": {"JOBS": str(jobs)},
    }  # fmt: skip
    judge = insist(alice, "POST", "jobs/", body)["id"]
    over = ("succeeded", "failed")
    until("it has judged", lambda: alice("GET", f"jobs/{judge}/")[1]["phase"] in over, STILL_SECONDS)
    found = alice("GET", f"jobs/{judge}/")[1]
    assert found["phase"] == "succeeded", found["attempts"]


def is_as_promised(stack: Stack, jobs: int) -> None:
    until("all claims are released", lambda: not stack.rows(NOT_RELEASED), 60)
    assert stack.rows(BILLED_WRONG) == []
    assert stack.rows("SELECT count(*) AS count FROM jobs_job")[0]["count"] == jobs
    assert stack.rows("SELECT count(*) AS count FROM jobs_attempt WHERE counted")[0]["count"] == 0
    alive = [pod for pod in stack.in_cluster("Pod") if pod["status"]["phase"] in ("Pending", "Running")]
    assert [pod["metadata"]["name"] for pod in alive if "berth.dev/job" in pod["metadata"]["labels"]] == []
