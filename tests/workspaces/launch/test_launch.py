"""Launch: writes workspace, claim and first event at once, or names the faulty fields."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest
from django.db import connections

from accounts.errors import Conflict, Invalid, NotAllowed, NotThere, TooMany
from accounts.models import AuditEntry
from quotas.models import Claim, Pool
from quotas.pools.needs import GpuAsked
from tests.cast import Cast
from tests.workspaces.specs import spec
from workspaces.launch.launch import launch
from workspaces.models import Workspace
from workspaces.sizes.sizing import SizeAsked

pytestmark = pytest.mark.django_db


def faults(**changes: Any) -> dict[str, list[str]]:
    """Launch as `actor`, which must be refused. Return the faults by field."""
    with pytest.raises(Invalid) as caught:
        launch(changes.pop("actor"), spec(**changes))
    assert not Workspace.objects.exists()
    return caught.value.fields


def test_it_works(cast: Cast) -> None:
    workspace = launch(cast.alice, spec())
    claim = Claim.objects.get()
    assert (claim.holder_id, claim.units, claim.state) == (workspace.pk, 1, "waiting")
    assert workspace.run == claim.pk
    (event,) = workspace.events.all()
    assert (event.number, event.step, event.code) == (1, "request", "requested")
    assert event.data == {"name": workspace.name, "size": "One A100"}
    assert workspace.step == "admission"
    assert AuditEntry.objects.filter(action="workspace.launch", outcome="done").exists()


def test_a_name_is_taken_once_per_person_and_tenant(cast: Cast) -> None:
    launch(cast.alice, spec())
    with pytest.raises(Conflict) as caught:
        launch(cast.alice, spec())
    assert caught.value.code == "name_taken"
    launch(cast.bob, spec())
    assert Workspace.objects.count() == 2


def test_a_deleted_workspace_frees_its_name(cast: Cast) -> None:
    first = launch(cast.alice, spec())
    Workspace.objects.filter(pk=first.pk).update(deleted_at=first.created_at)
    launch(cast.alice, spec())


@pytest.mark.django_db(transaction=True)
def test_the_same_launch_at_once_is_done_once(cast: Cast) -> None:
    def attempt(_: int) -> str:
        try:
            launch(cast.alice, spec())
            return "launched"
        except Conflict as conflict:
            return conflict.code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        answers = sorted(pool.map(attempt, range(4)))
    assert answers == ["launched", "name_taken", "name_taken", "name_taken"]
    assert Claim.objects.count() == 1


def test_a_stranger_learns_nothing_of_the_tenant(cast: Cast) -> None:
    with pytest.raises(NotThere):
        launch(cast.carol, spec())


def test_a_viewer_may_only_look_and_that_is_on_record(cast: Cast) -> None:
    with pytest.raises(NotAllowed):
        launch(cast.victor, spec())
    assert AuditEntry.objects.get(action="workspace.launch").outcome == "refused"


@pytest.mark.parametrize("name", ["", "-a", "a" * 64, "a/b", "a\nb", "ä"])
def test_names_are_plain(cast: Cast, name: str) -> None:
    assert "name" in faults(actor=cast.alice, name=name)


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA_VISIBLE_DEVICES",
        "CUDA_DISABLE_CONTROL",
        "CUDA_TASK_PRIORITY",  # of HAMi: it slows down the others on the GPU
        "LD_PRELOAD",
        "JUPYTER_TOKEN",
        "POD_IP",
        "KUBERNETES_X",
        "HOME",
        "PATH",
    ],
)
@pytest.mark.parametrize("where", ["env", "secret_env"])
def test_what_decides_about_gpus_and_access_cannot_be_set(cast: Cast, name: str, where: str) -> None:
    assert where in faults(actor=cast.alice, **{where: {name: "1"}})


def test_names_of_the_environment_are_well_formed_and_stand_once(cast: Cast) -> None:
    assert "env" in faults(actor=cast.alice, env={"1A": "x"})
    assert "env" in faults(actor=cast.alice, env={"A": "x\0y"})
    assert "secret_env" in faults(actor=cast.alice, env={"A": "1"}, secret_env={"A": "2"})


def test_secret_values_are_stored_encrypted_and_never_shown(cast: Cast) -> None:
    asked = spec(secret_env={"API_KEY": "hush-hush"})
    assert "hush-hush" not in repr(asked)
    workspace = launch(cast.alice, asked)
    assert "hush-hush" not in workspace.secret.env
    assert workspace.secret.clear_env() == {"API_KEY": "hush-hush"}
    assert "hush-hush" not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize("repository", ["file:///etc", "--upload-pack=x", "https://a b", "ext::sh -c id"])
def test_a_repository_is_an_address_for_git(cast: Cast, repository: str) -> None:
    assert "repository" in faults(actor=cast.alice, repository=repository)


def test_more_than_the_quota_is_refused_at_once(cast: Cast) -> None:
    size = SizeAsked(pool="a100", gpus=Fraction(5))
    assert "gpus" in faults(actor=cast.alice, size=size)


def test_exactly_one_of_flavor_pool_or_gpu_says_where(cast: Cast) -> None:
    assert "flavor" in faults(actor=cast.alice, size=SizeAsked())
    assert "flavor" in faults(actor=cast.alice, size=SizeAsked(flavor="a100-1", pool="a100"))
    assert "flavor" in faults(actor=cast.alice, size=SizeAsked(flavor="absent"))
    assert "pool" in faults(actor=cast.alice, size=SizeAsked(pool="absent"))


def test_fractions_are_multiples_of_what_the_pool_gives(cast: Cast) -> None:
    assert "gpus" in faults(actor=cast.alice, size=SizeAsked(pool="a100", gpus=Fraction(1, 2)))
    Pool.objects.update(units_per_gpu=7, resource_name="nvidia.com/mig-1g.10gb", sharing="mig")
    cluster_node = cast.cluster.nodes.first()
    assert cluster_node is not None
    cluster_node.allocatable |= {"nvidia.com/mig-1g.10gb": 14}
    cluster_node.save()
    workspace = launch(cast.alice, spec(size=SizeAsked(pool="a100", gpus=Fraction("0.14"))))
    assert workspace.units == 1


def test_a_gpu_is_found_by_what_it_must_have_at_least(cast: Cast) -> None:
    wanted = SizeAsked(gpu=GpuAsked(min_memory_mib=40_000, min_compute_capability="8.0"))
    assert launch(cast.alice, spec(size=wanted)).pool.slug == "a100"


def test_no_such_gpu_is_said(cast: Cast) -> None:
    assert "gpu" in faults(actor=cast.alice, size=SizeAsked(gpu=GpuAsked(min_memory_mib=100_000)))
    assert "gpu" in faults(actor=cast.alice, size=SizeAsked(gpu=GpuAsked(min_compute_capability="9.0")))


def test_nobody_but_an_admin_jumps_the_queue_of_all(cast: Cast) -> None:
    assert "priority" in faults(actor=cast.alice, priority=1)
    assert launch(cast.alice, spec(priority=-1)).priority == -1
    assert launch(cast.admin, spec(priority=5)).priority == 5


def test_nobody_fills_the_queue(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workspaces.launch.launch.MOST_WAITING", 1)
    launch(cast.alice, spec())
    with pytest.raises(TooMany):
        launch(cast.alice, spec(name="exp-2"))
    launch(cast.bob, spec())
