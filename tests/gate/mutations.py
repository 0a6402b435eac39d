"""Mutation spot check: faults put into a copy of the product, one at a time, each of which the tests must catch.

`python -m tests.gate.mutations [NAME-PART ...]` tries those whose name contains a part, or all, and exits 1 where one
is not caught or no longer applies. First the tests run without any fault: what is red then proves nothing.
"""

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
QUICK = "not slow and not long and not screenshots"
PYTEST = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", "2", "--hypothesis-profile=ci")
LONGEST_SECONDS = 900
GRACE_SECONDS = 60
"""Time that a run over its limit has to take its database down."""
INSTALLED = (".venv", ".dev", "node_modules", "static/vendor")
FAILED, BROKEN = (re.compile(rf"^{word} (.+?)(?: - |$)", re.MULTILINE) for word in ("FAILED", "ERROR"))


@dataclass(frozen=True)
class Mutation:
    """A fault: `old`, which stands in `file` exactly once, becomes `new`, and one of `tests` must fail by it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    verdict: str
    seconds: float
    failed: str = ""
    """Name of the first test that failed."""


# --- The faults

MUTATIONS = (
    # Admission and queue
    Mutation(
        "pools of one cluster are decided about at the same time",
        "quotas/admission.py",
        "with _locked_beyond_transactions(cluster_id):",
        "with _locked_beyond_transactions(pool_id):",
        ("tests/quotas/test_at_once.py",),
    ),
    Mutation(
        "a claim that was released while a pass decided is started all the same",
        "quotas/admission.py",
        "filter(pk=claim.pk, state=State.WAITING).update(**values)",
        "filter(pk=claim.pk).update(**values)",
        ("tests/quotas/test_at_once.py",),
    ),
    Mutation(
        "what starts in a pass does not count against the quota of those after it",
        "quotas/scheduling/walk.py",
        "        self.shares.keep(claim, self.now, until)\n",
        "",
        ("tests/quotas/scheduling/test_scheduling.py",),
    ),
    Mutation(
        "no node is kept for one that waits for room, so that later ones overtake it",
        "quotas/scheduling/walk.py",
        "got is not None)\n        self.keep(claim, spot)\n",
        "got is not None)\n",
        ("tests/quotas/scheduling/test_scheduling.py",),
    ),
    Mutation(
        "a gang starts as soon as one of its members has room",
        "quotas/scheduling/gangs.py",
        "            if there >= members:\n",
        "            if there >= 1:\n",
        ("tests/quotas/scheduling/test_gangs.py",),
    ),
    Mutation(
        "a gang that is asked back ends on one of its nodes only",
        "quotas/scheduling/reclaim.py",
        "places = self._members_at[run.claim] if run.members > 1 else [(line, number)]",
        "places = [(line, number)]",
        ("tests/quotas/scheduling/test_gangs.py",),
    ),
    Mutation(
        "GPUs are asked back of runs with a higher priority, not of others",
        "quotas/scheduling/reclaim.py",
        "loan.run.priority <= wanted.priority",
        "loan.run.priority >= wanted.priority",
        ("tests/quotas/scheduling/test_scheduling_over_time.py",),
    ),
    Mutation(
        "a writer is let in beside readers",
        "quotas/scheduling/state.py",
        "return self.writes or other.writes or self.is_exclusive or other.is_exclusive",
        "return self.is_exclusive or other.is_exclusive",
        ("tests/quotas/scheduling/test_leases.py",),
    ),
    Mutation(
        "a volume is deleted before its time in the bin is over",
        "storage/models.py",
        "return self.bin_until is not None and self.bin_until <= timezone.now()",
        "return self.bin_until is not None",
        ("tests/storage/test_keeping.py",),
    ),
    # Runs on their way up and down
    Mutation(
        "the Retain patch is skipped",
        "storage/cluster/look.py",
        'return volumes.set_reclaim(name, "Retain", mirror)',
        'return volumes.set_reclaim(name, "Delete", mirror)',
        ("tests/workspaces/runs/test_odd_clusters.py",),
    ),
    Mutation(
        "the finalizer is taken off before the pod has ended",
        "workspaces/cluster/proof.py",
        "    if end_proven(pod):\n        remove_finalizer(pod, mirror)\n        return True\n    return False",
        "    remove_finalizer(pod, mirror)\n    return True",
        ("tests/workspaces/runs/test_any_order.py", "tests/workspaces/runs/test_odd_clusters.py"),
    ),
    Mutation(
        "the end of another pod proves that of one which vanished",
        "workspaces/cluster/proof.py",
        "    if not row.pod_ended and row.pod_uid not in ends:\n        return False\n",
        "",
        ("tests/workspaces/runs/test_odd_clusters.py",),
    ),
    Mutation(
        "a look clears a mark that came while it looked",
        "workspaces/runs/reconcile.py",
        "filter(pk=workspace.pk, dirty_marks=workspace.dirty_marks)",
        "filter(pk=workspace.pk)",
        ("tests/workspaces/runs/test_marks.py",),
    ),
    Mutation(
        "another wish that comes during the last look is taken for done",
        "workspaces/runs/take_down.py",
        "            if ending_key(row) != ending_key(workspace):\n                return  #",
        "            if row.run != workspace.run:\n                return  #",
        ("tests/workspaces/runs/test_odd_clusters.py",),
    ),
    Mutation(
        "a run is finished while others decide about its cluster",
        "workspaces/runs/take_down.py",
        "        admission.lock(workspace.pool.cluster_id)\n        claim = ",
        "        claim = ",
        ("tests/workspaces/runs/test_order_of_locks.py",),
    ),
    # Who may what
    Mutation(
        "a token that is bound to a tenant sees all tenants of its person",
        "accounts/access.py",
        "        tenants = tenants.filter(id=actor.token.tenant_id)\n",
        "        pass\n",
        ("tests/accounts/test_access.py",),
    ),
    Mutation(
        "workspaces of all tenants are visible",
        "workspaces/access.py",
        "Workspace.objects.filter(tenant__in=visible_tenants(actor))",
        "Workspace.objects.all()",
        ("tests/workspaces/api/test_api_isolation.py",),
    ),
    Mutation(
        "a token that is bound to a tenant outlives its person's membership",
        "accounts/credentials/tokens.py",
        "return Membership.objects.filter(user=user, tenant_id=token.tenant_id).exists()",
        "return True",
        ("tests/accounts/test_tokens.py",),
    ),
    # Ways into a workspace
    Mutation(
        "pages of other workspaces may use a pass",
        "workspaces/gateway/hosts.py",
        "return origin == f\"{urlsplit(settings.BASE_URL).scheme}://{headers['host'].lower()}\"",
        "return str(urlsplit(origin).hostname).endswith(settings.WORKSPACE_DOMAIN)",
        ("tests/workspaces/ways_in/test_gateway.py",),
    ),
    Mutation(
        "the ssh jump leads to workspaces in which its person may not work any more",
        "workspaces/ssh_jump/rights.py",
        "if access.may_work(actor, row) and (target",
        "if (target",
        ("tests/workspaces/ways_in/test_ssh_jump.py",),
    ),
    Mutation(
        "a tunnel stays open when its workspace has moved",
        "workspaces/ssh_jump/guest.py",
        "now.get(tunnel.target.workspace_id) != tunnel.target)",
        "tunnel.target.workspace_id not in now)",
        ("tests/workspaces/ways_in/test_ssh_jump.py",),
    ),
    # Ledger and budgets
    Mutation(
        "the ledger counts a gang as one member",
        "quotas/accounting/ledger.py",
        "units=claim.all_units,",
        "units=claim.units,",
        ("tests/quotas/test_gangs.py",),
    ),
    Mutation(
        "what runs is counted again from its begin, beside the ledger",
        "quotas/accounting/hours.py",
        "max(begin, settled_until or admitted_at)",
        "max(begin, admitted_at)",
        ("tests/quotas/accounting/test_budgets.py",),
    ),
    Mutation(
        "a budget of which everything is used is not spent yet",
        "quotas/accounting/budgets.py",
        "return self.spent >= self.limit",
        "return self.spent > self.limit",
        ("tests/quotas/accounting/test_budgets.py",),
    ),
    # Watch and marks
    Mutation(
        "after a gap what is still there is told as deleted, and what is gone is not",
        "clusters/mirror.py",
        "if name not in self._objects[kind]]",
        "if name in self._objects[kind]]",
        ("tests/clusters/test_mirror.py",),
    ),
    Mutation(
        "an answer that comes late brings back what is gone",
        "clusters/mirror.py",
        "if kind in self._versions and number(version_of(body)) > self._versions[kind]:",
        "if kind in self._versions:",
        ("tests/clusters/test_mirror.py",),
    ),
    Mutation(
        "after a fault an older state of an object replaces a newer one",
        "clusters/watch/changes.py",
        "self._pending = pending | self._pending",
        "self._pending = self._pending | pending",
        ("tests/clusters/watch/test_changes.py",),
    ),
    Mutation(
        "one object that cannot be read ends the watch of all",
        "clusters/watch/skipping.py",
        "return isinstance(error, DataError) or not isinstance(error, Error)",
        "return isinstance(error, DataError)",
        ("tests/clusters/watch/test_skipping.py",),
    ),
    Mutation(
        "two who mark lock rows in any order",
        "workspaces/enqueue.py",
        "ORDER BY id FOR NO KEY UPDATE",
        "ORDER BY id DESC FOR NO KEY UPDATE",
        ("tests/workspaces/runs/test_marks.py",),
    ),
    Mutation(
        "what is looked at is taken a second time",
        "workspaces/runs/lanes.py",
        "        if workspace in self._in_hand:\n            again",
        "        if False:\n            again",
        ("tests/workspaces/runs/test_lanes.py",),
    ),
)


def stale(mutations: Iterable[Mutation] = MUTATIONS, root: Path = ROOT) -> list[str]:
    """Return the names of those that no longer apply: their text does not stand exactly once in their file."""
    files = ((one, root / one.file) for one in mutations)
    return [one.name for one, file in files if not file.is_file() or file.read_text().count(one.old) != 1]


def main(parts: list[str]) -> int:
    chosen = [one for one in MUTATIONS if not parts or any(part in one.name for part in parts)]
    if not chosen:
        print("No fault has such a name.")
        return 1
    with tempfile.TemporaryDirectory(prefix="berth-mutations-") as folder:
        copy_tree(copy := Path(folder))
        if not _is_green(copy, chosen):
            return 1
        results = [_tell(one, copy) for one in chosen]
    print(f"{sum(results)} of {len(chosen)} faults caught")
    return int(not all(results))


def _tell(mutation: Mutation, copy: Path) -> bool:
    """Print one row of the table. Return True if the fault was caught."""
    result = Result("no longer applies", 0) if stale([mutation]) else try_one(mutation, copy)
    print(f"{result.verdict:<18} {result.seconds:4.0f} s  {mutation.name}")
    print(f"{'':26} {result.failed or ', '.join(mutation.tests)}", flush=True)
    return result.verdict == "caught"


def copy_tree(copy: Path) -> None:
    """Copy what is, or would be, committed; what is installed or compiled is linked."""
    copy.chmod(0o755)  # some tests run programs as other users
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    compiled = (file.relative_to(ROOT).as_posix() for file in ROOT.glob("locale/**/*.mo"))
    for name in (*INSTALLED, *compiled):
        (copy / name).symlink_to(ROOT / name)
    subprocess.run(["git", "init", "-q"], cwd=copy, check=True)  # some tests ask git for files


def _is_green(copy: Path, chosen: list[Mutation]) -> bool:
    """Run the tests without a fault."""
    result = run_tests(sorted({test for one in chosen for test in one.tests}), copy)
    if result.verdict == "NOT CAUGHT":
        return True
    print(f"Red or broken without any fault: {result.failed or result.verdict}")
    return False


def try_one(mutation: Mutation, copy: Path) -> Result:
    """Put the fault in, run its tests, and take it out again."""
    file = copy / mutation.file
    text = file.read_text()
    file.write_text(text.replace(mutation.old, mutation.new))
    try:
        return run_tests(mutation.tests, copy)
    finally:
        file.write_text(text)


def run_tests(tests: Iterable[str], copy: Path) -> Result:
    began = time.monotonic()
    command = [sys.executable, *PYTEST, "-m", QUICK, *tests]
    with subprocess.Popen(
        command, cwd=copy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # so that it takes its database down
            threading.Timer(GRACE_SECONDS, process.kill).start()
            process.communicate()
            return Result("took too long", LONGEST_SECONDS)
    return judge(process.returncode, output, time.monotonic() - began)


def judge(code: int, output: str, seconds: float) -> Result:
    """Return the verdict on a fault, from pytest's exit code and output.

    Stopped at the first failure, several workers exit with 2 as they do when no test could be read: only a test that
    failed counts as caught.
    """
    failed = FAILED.search(output)
    if code in (1, 2) and failed:
        return Result("caught", seconds, failed[1])
    if code == 0:
        return Result("NOT CAUGHT", seconds)
    broken = BROKEN.search(output)
    return Result(f"error {code}", seconds, broken[1] if broken else output.strip().rpartition("\n")[2])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
