"""Order of locks: of two actions at once, the second waits and both succeed. There is no deadlock."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from accounts import signals
from accounts.access import Actor
from accounts.credentials import ssh_keys
from accounts.errors import Refusal
from accounts.locks import locked
from accounts.models import SSHKey, Tenant, User
from accounts.notices import inbox
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.trail import audit
from clusters.models import Cluster
from portal.environment import BASE_DIR
from quotas import admission, passes
from quotas.admin.pools import ClosePools
from quotas.models import Pool
from tests.cast import KEY, NETWORKS, Cast
from tests.crew import on_its_own
from tests.shared.clients import browser
from tests.shared.concurrency import waits_for_me
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.specs import spec
from workspaces import enqueue
from workspaces.launch.launch import launch
from workspaces.models import Desired, Ending, Phase, Workspace
from workspaces.runs import lifecycle, people, take_down
from workspaces.state.live import changing

pytestmark = [pytest.mark.django_db(transaction=True)]

Beside = Callable[[Callable[[], Any]], Future[Any]]


@pytest.fixture
def beside() -> Iterator[Beside]:
    """Function that starts work on its own connection. It returns when the work is done or waits for a lock of ours."""
    with ThreadPoolExecutor(1) as threads:

        def begin(work: Callable[[], Any]) -> Future[Any]:
            running = threads.submit(on_its_own, work)
            deadline = time.monotonic() + 30
            while not running.done() and not waits_for_me():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            return running

        yield begin


def test_a_key_is_added_while_a_workspace_of_its_owner_is_changed(cast: Cast, beside: Beside) -> None:
    """The change ends with an audit entry, which references its person."""
    workspace = make_workspace(cast, cast.alice)
    with transaction.atomic():
        with changing(workspace.pk) as row:
            row.node = "gpu-2"
        audit.record(cast.alice, "workspace.change", target=row)
        adding = beside(lambda: ssh_keys.add(cast.alice, "laptop", KEY))
    adding.result()
    assert SSHKey.objects.count() == 1


def test_a_person_is_removed_while_one_of_their_workspaces_is_changed(cast: Cast, beside: Beside) -> None:
    workspace = make_workspace(cast, cast.bob)
    with transaction.atomic():
        admission.lock(cast.cluster.pk)
        taking_out = beside(lambda: people.remove_person(cast.alice, cast.demo, "bob", stop=True))
        with changing(workspace.pk) as row:
            row.node = "gpu-2"
    taking_out.result()
    workspace.refresh_from_db()
    assert (workspace.node, workspace.desired) == ("gpu-2", Desired.STOPPED)


def test_a_launch_during_the_removal_of_its_owner_is_stopped_too(cast: Cast, beside: Beside) -> None:
    with transaction.atomic():
        workspace = launch(cast.bob, spec())
        taking_out = beside(lambda: people.remove_person(cast.alice, cast.demo, "bob", stop=True))
    taking_out.result()
    workspace.refresh_from_db()
    assert workspace.desired == Desired.STOPPED


@pytest.mark.parametrize("begin", [lambda bob, _: launch(bob, spec(name="exp-2")), lifecycle.start])
def test_a_person_who_was_just_removed_starts_nothing(
    cast: Cast, beside: Beside, begin: Callable[[Actor, Workspace], Any]
) -> None:
    own = make_workspace(cast, cast.bob, Phase.STOPPED)
    with transaction.atomic():
        people.remove_person(cast.alice, cast.demo, "bob", stop=True)
        beginning = beside(lambda: begin(cast.bob, own))
    with pytest.raises(Refusal):
        beginning.result()
    assert not Workspace.objects.filter(desired=Desired.RUNNING).exists()


def test_roles_of_several_change_while_the_watcher_marks_what_they_run(cast: Cast, beside: Beside) -> None:
    """Locks are taken in the order of a mark of all rows, whichever person is reported first."""
    made = {actor.user: make_workspace(cast, actor) for actor in (cast.alice, cast.bob)}
    (first, workspace), (last, _) = sorted(made.items(), key=lambda pair: pair[1].pk)
    with signals.access_changes_together():
        signals.send_access_changed(last)
        marking = beside(lambda: enqueue.reconcile(row.pk for row in made.values()))
        signals.send_access_changed(first)
    marking.result()
    workspace.refresh_from_db()
    assert workspace.dirty_marks == 2


def test_notices_are_read_while_their_mail_is_sent(cast: Cast, beside: Beside) -> None:
    """The two change many rows of one person, and would find them in different orders."""
    first, last = sorted(uuid4() for _ in range(2))
    for pk in (last, first):
        about = {"subject": "x", "subject_id": pk, "key": str(pk), "data": {}}
        Notice.objects.create(pk=pk, user=cast.alice.user, kind=Kind.READY, in_berth=True, **about)
    with transaction.atomic():
        locked(Notice.objects.filter(pk=first)).get()
        reading = beside(lambda: inbox.read_all(cast.alice.user))
        # The reader waits for the first row, so it cannot hold the last yet.
        Notice.objects.select_for_update(nowait=True).get(pk=last)
    reading.result()
    assert inbox.unread(cast.alice.user) == 0


def test_a_worker_begins_while_pools_are_marked(cast: Cast, beside: Beside) -> None:
    """Marks of pools are removed one by one: a waiting worker holds no other pool."""
    pools = [cast.pool, Pool.objects.create(slug="also", name="Also", cluster=cast.cluster)]
    for waits_for, other in (pools, pools[::-1]):
        Pool.objects.update(pass_queued_at=timezone.now())
        with transaction.atomic():
            locked(Pool.objects.filter(pk=waits_for.pk)).get()
            beginning = beside(passes.on_worker_began)
            Pool.objects.select_for_update(nowait=True).get(pk=other.pk)
        beginning.result()


def test_pools_of_several_clusters_are_closed_by_several_admins(cast: Cast, beside: Beside) -> None:
    """The order of the admins' lists does not matter."""
    clusters = sorted(
        [cast.cluster, Cluster.objects.create(slug="other", name="Other", **NETWORKS)], key=lambda c: c.pk
    )
    pools = [
        Pool.objects.create(slug=slug, name=slug, cluster=cluster)
        for slug, cluster in zip(("0-last", "1-first"), reversed(clusters), strict=True)
    ]
    seen = [effect.digest for effect in ClosePools().effects(cast.admin, pools)]
    chosen = [pool.pk for pool in pools]
    form = {"action": "close", "_selected_action": chosen, "confirmed": "1", "seen": seen}
    client = browser(cast.admin)
    with transaction.atomic():
        admission.lock(clusters[0].pk)
        closing = beside(lambda: client.post("/admin/quotas/pool/", form))
        admission.lock(clusters[1].pk)
    closing.result()
    assert not Pool.objects.filter(pk__in=chosen, is_open=True).exists()


def test_a_change_of_quotas_waits_for_a_pass_under_way(cast: Cast, beside: Beside) -> None:
    """Claims admitted after the answer are admitted by the new shares."""
    client = browser(cast.admin)
    with transaction.atomic():
        admission.lock(cast.cluster.pk)
        saving = beside(lambda: client.post("/admin/quotas/quota/", {}))
        assert not saving.done()
    saving.result()


def test_a_tenant_is_changed_while_a_person_is_removed_from_it(cast: Cast, beside: Beside) -> None:
    """The two lock the clusters first, then the tenant."""
    with transaction.atomic():
        admission.lock(cast.cluster.pk)
        taking_out = beside(lambda: people.remove_person(cast.alice, cast.demo, "bob", stop=True))
        locked(Tenant.objects.filter(pk=cast.demo.pk)).get()
    taking_out.result()


def test_two_admins_change_each_others_page(cast: Cast, beside: Beside) -> None:
    boss = Actor(User.objects.create_user("boss", is_staff=True))
    first, last = sorted([boss, cast.admin], key=lambda actor: actor.user.pk)
    person = last.user
    form = {"username": person.username, "first_name": "New", "language": "en", "is_active": "on"}
    form |= {"initial-is_active": "True", "initial-is_staff": "True"}
    parts = ("memberships", "workspaces", "jobs", "tokens", "ssh_keys")
    form |= {f"{part}-{count}_FORMS": "0" for part in parts for count in ("TOTAL", "INITIAL")}
    client = browser(first)
    with transaction.atomic():
        locked(User.objects.filter(pk=first.user.pk)).get()
        changing_the_last = beside(lambda: client.post(f"/admin/accounts/user/{person.pk}/change/", form))
        locked(User.objects.filter(pk=person.pk)).get()
    assert changing_the_last.result().status_code == 302
    person.refresh_from_db()
    assert (person.first_name, person.is_staff) == ("New", False)


def test_a_pass_waits_for_the_cluster_to_which_its_pool_was_moved(cast: Cast, beside: Beside) -> None:
    there = Cluster.objects.create(slug="there", name="There", **NETWORKS)
    with admission._locked_beyond_transactions(there.pk):
        with transaction.atomic():
            admission.lock(cast.cluster.pk)
            passing = beside(lambda: admission.admit(cast.pool.pk))
            Pool.objects.update(cluster=there)
        while not waits_for_me():
            assert not passing.done()
    assert passing.result() == 0


def test_an_ended_run_is_finished_after_the_holder_of_the_clusters_lock(cast: Cast, beside: Beside) -> None:
    workspace = make_workspace(cast, cast.alice, Phase.STOPPING, ending=Ending.STOP)
    with transaction.atomic():
        admission.lock(cast.cluster.pk)
        finishing = beside(lambda: take_down.finish(workspace))
        Workspace.objects.select_for_update(nowait=True).get(pk=workspace.pk)
        assert not finishing.done()
    finishing.result()
    workspace.refresh_from_db()
    assert workspace.phase == Phase.STOPPED


def test_rows_are_locked_in_one_place() -> None:
    """See `accounts/locks.py`. A plain FOR UPDATE would block writers of rows that reference the locked row."""
    command = ["git", "grep", "--untracked", "-l", "select_for_update", "--", "*.py", ":!tests"]
    found = subprocess.run(command, cwd=BASE_DIR, capture_output=True, text=True, check=True).stdout.split()
    assert found == ["accounts/locks.py"]
