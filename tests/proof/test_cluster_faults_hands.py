"""Changes to Berth's objects with `kubectl`, and lost nodes: every workspace still ends as its person wishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.stack import until
from tests.proof import invariants
from tests.proof.faulty_world import BERTHS, Victim, World, world_in
from tests.sampling import rare

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]

Found = Callable[[str, str], None]
CONFIRM = """
from accounts.access import Actor
from accounts.models import User
from quotas import admission
from quotas.models import Claim
admission.confirm_end(Actor(User.objects.get(username="admin")), Claim.objects.get(pk="{run}"))
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("hands")
    with world_in(folder, "hands", "nodes", "erased") as world:
        yield world


@pytest.fixture
def mine(world: World, request: pytest.FixtureRequest) -> Iterator[Victim]:
    """A ready workspace of alice, deleted afterwards."""
    name = request.node.name.removeprefix("test_").replace("_", "-").replace("[", "-").strip("]")
    victim = world.ready("alice", "hands", name.lower()[-40:].strip("-"))
    yield victim
    invariants.hold(world.stack, only=[victim.id])
    victim.leave()


def confirm(victim: Victim) -> None:
    """Confirm as an admin that the container has ended."""
    victim.world.stack.manage("shell", "-c", CONFIRM.format(run=victim.run))


# --- changes that end nothing


def test_a_deleted_service_comes_back_and_nothing_ends(mine: Victim, found: Found) -> None:
    pod = mine.uid("Pod")
    mine.delete("Service")
    until("the Service is there again", lambda: mine.there("Service"))
    until("its address is told", lambda: mine.now()["endpoints"]["ssh"])
    assert (mine.uid("Pod"), mine.told("ready"), mine.now()["phase"]) == (pod, 1, "ready")
    found("Service deleted by hand", "made again, the pod ran on")


@pytest.mark.parametrize("kind", ["Pod", rare("Service"), rare("PersistentVolumeClaim")])
def test_labels_that_were_taken_off_come_back(kind: str, mine: Victim, found: Found) -> None:
    pod, ours = mine.uid("Pod"), mine.object(kind)["metadata"]["labels"]
    mine.patch(kind, {"metadata": {"labels": None}})

    def labelled() -> bool:
        labels = mine.object(kind)["metadata"].get("labels") or {}
        return bool(labels.items() >= {n: v for n, v in ours.items() if n.startswith("berth.dev/")}.items())

    until("it is labelled again", labelled)
    assert (mine.uid("Pod"), mine.told("interrupted"), mine.told("volume_deleted")) == (pod, 0, 0)
    found(f"labels of the {kind} removed", "set again, the pod ran on")


def test_a_pod_without_its_finalizer_gets_it_back(mine: Victim, found: Found) -> None:
    mine.patch("Pod", {"metadata": {"finalizers": None}})
    until("it is there again", lambda: mine.object("Pod")["metadata"].get("finalizers"))
    assert mine.now()["phase"] == "ready"
    found("finalizer of the pod removed", "set again, the pod ran on")


# --- objects that a run needs


@pytest.mark.parametrize("kind", ["Secret", rare("Service")])
def test_what_lets_people_in_is_made_again_for_the_next_run(
    world: World, mine: Victim, kind: str, found: Found
) -> None:
    mine.delete(kind)
    mine.wish("restart")
    mine.is_back(2)
    assert mine.there(kind)
    found(f"{kind} deleted by hand", "made again for the next run")


def test_a_service_deleted_in_the_middle_of_a_start_is_made_again(world: World, found: Found) -> None:
    with world.fault(image="*", seconds=4):
        victim = world.launch("bob", "hands", "start-without-service")
        until("its pod is there", lambda: victim.there("Pod"))
        victim.delete("Service")
    victim.becomes("ready")
    until("it is made again", lambda: victim.there("Service"))
    victim.leave()
    found("Service deleted in the middle of a start", "made again, and ready")


# --- changes that end a run


def test_another_image(mine: Victim, found: Found) -> None:
    ours, pod = mine.object("Pod")["spec"]["containers"][0]["image"], mine.uid("Pod")
    foreign = {"name": "workspace", "image": "berth.local/jupyter:1-foreign"}
    mine.patch("Pod", {"spec": {"containers": [foreign]}}, "strategic")
    mine.delete("Service")  # causes a reconcile
    until("it was looked at", lambda: mine.there("Service"))
    assert mine.uid("Pod") == pod
    mine.wish("restart")
    mine.is_back(2)
    assert mine.object("Pod")["spec"]["containers"][0]["image"] == ours
    found("image of the pod changed", "the next run has the image that was asked for")


def test_a_pod_forced_away_ends_only_once_its_end_was_seen(mine: Victim, found: Found) -> None:
    mine.delete("Pod", gracePeriodSeconds=0)
    said = mine.hears("interrupted")
    mine.is_back(2)
    assert mine.told("end_unproven") == 0
    found("pod deleted with --force --grace-period=0", said)


def test_a_pod_forced_away_without_its_finalizer_keeps_its_gpus_until_an_admin_says_so(
    mine: Victim, found: Found
) -> None:
    with mine.world.fault(hold="before", match=BERTHS | {"verb": "patch", "resource": "pods"}):
        mine.patch("Pod", {"metadata": {"finalizers": None}})
        mine.delete("Pod", gracePeriodSeconds=0)
    said = mine.hears("end_unproven")
    mine.says("disappeared")
    confirm(mine)
    mine.is_back(2)
    found("finalizer removed and pod forced away", said)


def test_an_evicted_pod(mine: Victim, found: Found) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": f"ws-{mine.id}"}}
    status, answer = mine.world.kube.call("POST", f"{mine.path('Pod')}/eviction", body)
    assert status == 201, answer
    said = mine.hears("interrupted")
    mine.is_back(2)
    found("pod evicted", said)


# --- storage


def test_a_home_deleted_while_it_runs_is_told_at_once_and_mounted_again_by_the_next_start(
    mine: Victim, found: Found
) -> None:
    volume = mine.object("PersistentVolumeClaim")["spec"]["volumeName"]
    mine.delete("PersistentVolumeClaim")
    said = mine.hears("volume_deleted")
    mine.says("Somebody deleted its storage")
    mine.wish("restart")
    mine.is_back(2)
    assert mine.object("PersistentVolumeClaim")["spec"]["volumeName"] == volume
    assert "deleted" not in mine.now()["message"]
    found("PVC of a running workspace deleted", said)


# --- nodes and namespaces


def test_a_node_that_is_lost_and_comes_back(world: World, found: Found) -> None:
    victim = world.ready("alice", "nodes", "lost-and-back")
    pod = victim.uid("Pod")
    with world.fault(node=victim.now()["node"], state="unreachable"):
        said = victim.hears("node_lost")
        victim.says("node does not answer")
    victim.hears("node_back")
    assert "does not answer" not in victim.now()["message"]
    assert (victim.uid("Pod"), victim.told("ready"), victim.now()["phase"]) == (pod, 1, "ready")
    victim.leave()
    found("node lost and back", said)


@pytest.mark.long
def test_a_node_that_is_lost_for_good(world: World, found: Found) -> None:
    """Stop and start the workspace: nothing runs twice, and units come back once the node is known to be off."""
    victim = world.ready("bob", "nodes", "lost-for-good")
    node = victim.now()["node"]
    with world.fault(node=node, state="off"):
        said = victim.hears("node_lost")
        victim.wish("stop")
        victim.becomes("stopping")
        world.kube.call("DELETE", f"/api/v1/nodes/{node}")
        victim.becomes("stopped")
        victim.wish("start")
        victim.is_back(2)
        assert victim.now()["node"] != node
    victim.leave()
    found("node lost for good", said)


def test_a_namespace_deleted_while_workspaces_run_and_start(world: World, found: Found) -> None:
    running = [world.ready(person, "erased", "runs") for person in ("alice", "bob")]
    homes = [victim.object("PersistentVolumeClaim")["spec"]["volumeName"] for victim in running]
    with world.fault(image="*", seconds=4):
        starting = world.launch("alice", "erased", "starts")
        until("its pod is there", lambda: starting.there("Pod"))
        status, answer = world.kube.call("DELETE", "/api/v1/namespaces/berth-erased")
        assert status < 300, answer
        said = running[0].hears("interrupted")
    for victim, home in zip(running, homes, strict=True):
        victim.is_back(2)
        assert victim.object("PersistentVolumeClaim")["spec"]["volumeName"] == home
    starting.becomes("ready")
    for victim in (*running, starting):
        victim.leave()
    found("namespace deleted by hand", said)
