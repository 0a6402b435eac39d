"""Launch: writes workspace, claim and first event at once, or names the faulty fields."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from accounts.errors import Conflict, Invalid, NotAllowed, NotThere, TooMany
from accounts.models import AuditEntry
from quotas.models import Claim, Pool
from quotas.pools.needs import GpuAsked
from tests.cast import Cast
from tests.shared.concurrency import at_once
from tests.workspaces.specs import spec
from workloads.sizes.sizing import SizeAsked
from workspaces.launch.launch import launch
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


RESERVED = (
    "NVIDIA_VISIBLE_DEVICES",
    "CUDA_DISABLE_CONTROL",
    "CUDA_TASK_PRIORITY",  # of HAMi: it slows down the others on the GPU
    "LD_PRELOAD",
    "JUPYTER_TOKEN",
    "POD_IP",
    "KUBERNETES_X",
    "HOME",
    "PATH",
)


def faults(**changes: Any) -> dict[str, list[str]]:
    """Launch as `actor`, which must be refused. Return the faults by field."""
    with pytest.raises(Invalid) as caught:
        launch(changes.pop("actor"), spec(**changes))
    assert not Workspace.objects.exists()
    return caught.value.fields


def test_a_launch_writes_workspace_claim_and_event(cast: Cast) -> None:
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
        except Conflict as conflict:
            return conflict.code
        return "launched"

    answers = sorted(at_once(attempt, 4))
    assert answers == ["launched", "name_taken", "name_taken", "name_taken"]
    assert Claim.objects.count() == 1


def test_a_stranger_is_answered_as_if_the_tenant_did_not_exist(cast: Cast) -> None:
    with pytest.raises(NotThere):
        launch(cast.carol, spec())


def test_a_viewer_is_refused_and_that_is_audited(cast: Cast) -> None:
    with pytest.raises(NotAllowed):
        launch(cast.victor, spec())
    assert AuditEntry.objects.get(action="workspace.launch").outcome == "refused"


@pytest.mark.parametrize(
    "changes",
    [
        *({"name": name} for name in ("", "-a", "a" * 64, "a/b", "a\nb", "ä")),
        *({"repository": url} for url in ("file:///etc", "--upload-pack=x", "https://a b", "ext::sh -c id")),
        *({where: {name: "1"}} for where in ("env", "secret_env") for name in RESERVED),
        {"env": {"1A": "x"}},
        {"env": {"A": "x\0y"}},
        {"secret_env": {"A": "2"}, "env": {"A": "1"}},
        {"priority": 1},  # an admin's: it would jump the queue of all
    ],
    ids=str,
)
def test_an_impossible_value_is_refused_at_its_field(cast: Cast, changes: dict[str, Any]) -> None:
    assert next(iter(changes)) in faults(actor=cast.alice, **changes)


def test_secret_values_are_stored_encrypted_and_never_shown(cast: Cast) -> None:
    asked = spec(secret_env={"API_KEY": "hush-hush"})
    assert "hush-hush" not in repr(asked)
    workspace = launch(cast.alice, asked)
    assert "hush-hush" not in workspace.secret.env
    assert workspace.secret.clear_env() == {"API_KEY": "hush-hush"}
    assert "hush-hush" not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize(
    ("size", "field"),
    [
        (SizeAsked(), "flavor"),
        (SizeAsked(flavor="a100-1", pool="a100"), "flavor"),
        (SizeAsked(flavor="absent"), "flavor"),
        (SizeAsked(pool="absent"), "pool"),
        (SizeAsked(pool="a100", gpus=Fraction(5)), "gpus"),  # above the quota
        (SizeAsked(pool="a100", gpus=Fraction(1, 2)), "gpus"),
        (SizeAsked(gpu=GpuAsked(min_memory_mib=100_000)), "gpu"),
        (SizeAsked(gpu=GpuAsked(min_compute_capability="9.0")), "gpu"),
    ],
)
def test_an_impossible_size_is_refused_at_its_field(cast: Cast, size: SizeAsked, field: str) -> None:
    assert field in faults(actor=cast.alice, size=size)


def test_a_fraction_is_rounded_to_a_unit_of_the_pool(cast: Cast) -> None:
    Pool.objects.update(units_per_gpu=7, resource_name="nvidia.com/mig-1g.10gb", sharing="mig")
    cluster_node = cast.cluster.nodes.first()
    assert cluster_node is not None
    cluster_node.allocatable |= {"nvidia.com/mig-1g.10gb": 14}
    cluster_node.save()
    workspace = launch(cast.alice, spec(size=SizeAsked(pool="a100", gpus=Fraction("0.14"))))
    assert workspace.units == 1


def test_a_gpu_is_found_by_its_least_memory_and_capability(cast: Cast) -> None:
    wanted = SizeAsked(gpu=GpuAsked(min_memory_mib=40_000, min_compute_capability="8.0"))
    assert launch(cast.alice, spec(size=wanted)).pool.slug == "a100"


def test_an_admin_may_raise_a_priority_and_others_may_lower_theirs(cast: Cast) -> None:
    assert launch(cast.alice, spec(priority=-1)).priority == -1
    assert launch(cast.admin, spec(priority=5)).priority == 5


def test_waiting_requests_per_person_are_limited(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workspaces.launch.launch.MOST_WAITING", 1)
    launch(cast.alice, spec())
    with pytest.raises(TooMany):
        launch(cast.alice, spec(name="exp-2"))
    launch(cast.bob, spec())
