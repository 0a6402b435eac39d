"""Kills just before and after decisions on borrowing, preemption, bookings and budgets are committed.

One node with two GPUs; two tenants own one each and may borrow the other's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

import pytest

from tests.e2e.stack import PASSWORD, Client, until
from tests.proof import invariants
from tests.proof.killing import WITHIN_SECONDS, Ground, ground, insist
from tests.proof.life.office import Office
from tests.proof.moments import PARTS
from tests.sampling import rare

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

NODES = """
nodes:
- name: gpu
  cpu: 256
  memory: 2Ti
  gpus: {product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 2, compute: "8.0"}
"""
ROWS = """
UPDATE quotas_quota SET nominal_gpus = 1, borrowing_limit_gpus = 1;
INSERT INTO quotas_budget (tenant_id, gpu_hours, grace_minutes)
  SELECT id, 1000, 0 FROM accounts_tenant WHERE slug = 'demo';
"""
GRACE_MINUTES = "0.07"
BEFORE, AFTER = "before it is committed", "after it is committed"
EVENT = "SELECT 1 FROM workspaces_event e JOIN workspaces_workspace w ON w.id = e.workspace_id"


@dataclass(frozen=True)
class Moment:
    """A write about a workspace or a booking (`name`), and the part whose transaction it is."""

    name: str
    code: str
    part: str
    is_written: Callable[[Ground, str, int], Any]


def told(name: str, code: str, part: str = "worker") -> Moment:
    def is_written(berth: Ground, name: str, last: int) -> Any:
        return berth.one(f"{EVENT} WHERE w.name = %s AND e.code = %s AND e.id > %s", name, code, last)

    return Moment(name, code, part, is_written)


@dataclass
class Lent:
    """A Berth with two GPUs, and the API clients that ask for them."""

    ground: Ground
    clients: dict[str, Client]
    office: Office
    keys: Iterator[int] = field(default_factory=partial(count, 1))

    def launch(self, tenant: str, name: str) -> None:
        body = {"tenant": tenant, "name": name, "image": "jupyter", "flavor": "a100-1"}
        insist(self.clients[tenant], "POST", "workspaces/", body)

    def act(self, tenant: str, name: str, verb: str) -> None:
        insist(self.clients[tenant], "POST", f"workspaces/{self.row(name)['id']}/{verb}/")

    def delete(self, tenant: str, name: str) -> None:
        insist(self.clients[tenant], "DELETE", f"workspaces/{self.row(name)['id']}/?delete_disk=true")

    def row(self, name: str) -> dict[str, Any]:
        found = self.ground.one(
            "SELECT * FROM workspaces_workspace WHERE name = %s AND deleted_at IS NULL", name
        )
        assert found is not None
        return found

    def comes_to(self, phase: str, *names: str) -> None:
        for name in names:
            until(
                f"{name} is {phase}",
                lambda: self.row(name)["phase"] == phase,  # noqa: B023
                2 * WITHIN_SECONDS,
            )

    def last_event(self) -> int:
        found = self.ground.one("SELECT coalesce(max(id), 0) AS last FROM workspaces_event")
        assert found is not None
        return int(found["last"])

    def count(self, name: str, code: str, since: int) -> int:
        query = EVENT.replace("SELECT 1", "SELECT count(*) AS found")
        row = self.ground.one(f"{query} WHERE w.name = %s AND e.code = %s AND e.id > %s", name, code, since)
        assert row is not None
        return int(row["found"])

    def kill_at(self, when: str, moments: list[Moment], begin: Callable[[], object]) -> None:
        """Run `begin` and kill the part of each moment there, one after the other."""
        until("all parts run", lambda: all(self.ground.stack.runs(part) for part in PARTS))
        last, keys = self.last_event(), [next(self.keys) for _ in moments]
        if when == BEFORE:
            for moment, key in zip(moments, keys, strict=True):
                self.ground.close_gate(moment.name, moment.code, key)
        begun = self.ground.pool.submit(begin)
        for moment, key in zip(moments, keys, strict=True):
            until(f"{moment.part} runs", partial(self.ground.stack.runs, moment.part))
            kill = self.ground.stack.about_to_kill(moment.part)
            is_there = (
                partial(self.ground.waits_at_gate, key)
                if when == BEFORE
                else partial(moment.is_written, self.ground, moment.name, last)
            )
            until(f"{moment.code} of {moment.name}, {when}", is_there, WITHIN_SECONDS, pause=0.005)
            kill()
            if when == BEFORE:
                self.ground.open_gate(key)
        begun.result(WITHIN_SECONDS)


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lent]:
    """Berth in which the tenant demo runs two workspaces, one of them on a borrowed GPU."""
    folder = tmp_path_factory.mktemp("kill-sharing")
    with ground(folder, nodes=NODES, rows=ROWS, BERTH_RECLAIM_GRACE_MINUTES=GRACE_MINUTES) as berth:
        carol = berth.stack.client(berth.stack.token("carol", "read", "workspaces"))
        admin = berth.stack.client(berth.stack.token("admin", "read", "workspaces", "admin"))
        office = Office(berth.stack.address, "admin", PASSWORD)
        lent = Lent(berth, {"demo": berth.api, "second": carol, "admin": admin}, office)
        for name in ("own", "borrowed"):
            lent.launch("demo", name)
            lent.comes_to("ready", name)
        yield lent


@pytest.mark.parametrize("when", [BEFORE, rare(AFTER)])
def test_a_borrower_is_preempted_once_and_goes_on_afterwards(when: str, lent: Lent) -> None:
    before = lent.last_event()
    moments = [
        told("borrowed", "asked_back_owner_waits"),
        told("borrowed", "given_back", "watcher"),
        told("borrowed", "waits_again"),
        told("owner", "admitted"),
    ]
    lent.kill_at(when, moments, lambda: lent.launch("second", "owner"))

    lent.comes_to("ready", "owner", "own")
    lent.comes_to("waiting", "borrowed")
    invariants.hold(lent.ground.stack, WITHIN_SECONDS)
    for code in ("asked_back_owner_waits", "given_back", "waits_again"):
        assert lent.count("borrowed", code, before) == 1

    lent.delete("second", "owner")
    lent.comes_to("ready", "own", "borrowed")
    invariants.hold(lent.ground.stack, WITHIN_SECONDS)
    assert lent.count("own", "given_back", 0) == 0


@pytest.mark.parametrize("when", [BEFORE, rare(AFTER)])
def test_runs_of_a_spent_budget_stop_and_their_time_is_in_the_ledger_once(when: str, lent: Lent) -> None:
    before = lent.last_event()
    # The transaction that reports a run's stop also writes its time to the ledger.
    stages = ("ends_by_budget", "stopped_by_budget_spent", "stopped")
    moments = [told("own", code) for code in stages]
    lent.kill_at(when, moments, partial(set_hours, lent, "0"))

    lent.comes_to("stopped", "own", "borrowed")
    invariants.hold(lent.ground.stack, WITHIN_SECONDS)
    assert lent.count("own", "stopped_by_budget_spent", before) == 1

    set_hours(lent, "1000")
    for name in ("own", "borrowed"):
        lent.act("demo", name, "start")
        lent.comes_to("ready", name)


def set_hours(lent: Lent, hours: str) -> None:
    budget = lent.ground.one("SELECT id FROM quotas_budget")
    assert budget is not None
    assert lent.office.change(f"quotas/budget/{budget['id']}", gpu_hours=hours, grace_minutes="0")


@pytest.mark.parametrize("when", [BEFORE, rare(AFTER)])
def test_a_booking_is_cancelled_once_and_waiting_requests_start(when: str, lent: Lent) -> None:
    lent.act("demo", "borrowed", "stop")
    lent.comes_to("stopped", "borrowed")
    now, title = datetime.now(UTC), f"a class {next(lent.keys)}"
    booking = {"tenant": "second", "pool": "a100", "title": title, "places": 1, "gpus_each": 1}
    booking |= {"from": now.isoformat(), "to": (now + timedelta(hours=1)).isoformat()}
    made = insist(lent.clients["admin"], "POST", "bookings/", booking)
    lent.act("demo", "borrowed", "start")
    lent.comes_to("waiting", "borrowed")

    def is_cancelled(berth: Ground, title: str, _last: int) -> Any:
        return berth.one("SELECT 1 FROM quotas_booking WHERE title = %s AND cancelled_at IS NOT NULL", title)

    moment = Moment(title, "quotas_booking", "web", is_cancelled)
    lent.kill_at(when, [moment], lambda: insist(lent.clients["admin"], "DELETE", f"bookings/{made['id']}/"))

    lent.comes_to("ready", "own", "borrowed")
    invariants.hold(lent.ground.stack, WITHIN_SECONDS)
    audit = "SELECT count(*) AS found FROM accounts_auditentry WHERE action = %s AND target_id = %s"
    assert lent.ground.one(audit, "booking.cancel", made["id"]) == {"found": 1}
