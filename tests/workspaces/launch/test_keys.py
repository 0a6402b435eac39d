"""Secrets of a workspace, from its launch to its deletion."""

from __future__ import annotations

import pytest

from accounts.credentials.secrets import decrypt
from quotas.models import Claim
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace
from workloads.pods.wanted import Shared
from workloads.repositories import VARIABLE, holds_credentials
from workloads.sizes.sizing import SizeAsked
from workspaces.cluster import pod
from workspaces.cluster.wanted import wanted_of
from workspaces.gateway import passes
from workspaces.gateway.hosts import Site
from workspaces.launch.clone import clone
from workspaces.launch.keys import forget_secrets, make_secret, new_secrets, whole_address
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Phase, Workspace, WorkspaceSecret
from workspaces.runs import lifecycle
from workspaces.runs.changes import Change, change

pytestmark = pytest.mark.django_db


def test_a_deleted_workspace_keeps_nothing_private_and_its_name_keeps_the_host_key(cast: Cast) -> None:
    workspace = make_workspace(
        cast, cast.bob, Phase.STOPPED, env={"A": "1"}, repository="https://git.example/a.git"
    )
    before = decrypt(workspace.secret.host_key)
    forget_secrets(workspace)
    workspace.save()
    deleted = Workspace.objects.select_related("secret").get(pk=workspace.pk)
    assert (deleted.env, deleted.repository, deleted.secret.clear_env()) == ({}, "", {})
    assert (deleted.secret.jupyter_token, deleted.secret.host_key) == ("", "")
    assert passes.admitted(f"{passes.SCRIPT}x", Site(workspace.pk)) is None
    assert decrypt(make_secret(workspace, {}).host_key) == before
    assert WorkspaceSecret.objects.count() == 1
    for owner, name, is_same in (
        (cast.bob, "EXP-1", True),
        (cast.bob, "exp-2", False),
        (cast.alice, "exp-1", False),
    ):
        another = Workspace(owner=owner.user, name=name)
        assert (decrypt(new_secrets(another, {})["host_key"]) == before) == is_same


def test_a_renamed_workspace_leaves_its_host_key_to_both_names(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STOPPED)
    change(cast.bob, workspace, Change(name="exp-2"))
    for name in ("exp-1", "exp-2"):
        secrets = new_secrets(Workspace(owner=cast.bob.user, name=name), {})
        assert secrets["host_key_public"] == workspace.secret.host_key_public


def test_a_name_that_was_anothers_gives_its_host_key_from_the_next_run_on(cast: Cast) -> None:
    first = make_workspace(cast, cast.bob, Phase.STOPPED, name="first")
    of_first = first.secret.host_key_public
    change(cast.bob, first, Change(name="moved"))
    second = make_workspace(cast, cast.bob, Phase.READY, name="second")
    own = second.secret.host_key_public
    change(cast.bob, second, Change(name="first"))
    assert WorkspaceSecret.objects.get(workspace=second).host_key_public == own != of_first
    lifecycle.restart(cast.bob, Workspace.objects.get(pk=second.pk))
    assert WorkspaceSecret.objects.get(workspace=second).host_key_public == of_first
    third = make_workspace(cast, cast.bob, Phase.STOPPED, name="third")
    change(cast.bob, third, Change(name="second"))  # nothing runs: at once
    assert WorkspaceSecret.objects.get(workspace=third).host_key_public == own


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("https://ann:hush@git.example/a.git", "https://git.example/a.git"),
        ("https://hush@git.example/a.git", "https://git.example/a.git"),
        ("ssh://git:hush@git.example/a.git", "ssh://git@git.example/a.git"),
        ("ssh://git@git.example/a.git", "ssh://git@git.example/a.git"),
    ],
)
def test_credentials_of_a_repository_go_to_the_secret_alone(cast: Cast, address: str, kept: str) -> None:
    spec = LaunchSpec(
        tenant="demo", name="exp-1", image="jupyter", size=SizeAsked(flavor="a100-1"), repository=address
    )
    workspace = launch(cast.bob, spec)
    wanted = wanted_of(workspace, Claim.objects.get(holder_id=workspace.pk), Shared())
    (variable,) = [entry for entry in pod.environment(wanted) if entry["name"] == VARIABLE]
    assert (workspace.repository, whole_address(workspace)) == (kept, address)
    assert ("value" in variable, "valueFrom" in variable) == (address == kept, address != kept)
    assert ("hush" in str(pod.spec(wanted, "start"))) is False
    assert holds_credentials(address) == (wanted.secret.env.get(VARIABLE) == address)
    copy = clone(cast.bob, workspace)
    assert (copy.repository, whole_address(copy)) == (kept, address)
