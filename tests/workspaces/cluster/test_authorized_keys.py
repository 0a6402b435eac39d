"""SSH keys that open a workspace: its owner's, for as long as they have access."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from accounts import members
from accounts.access import Actor
from accounts.credentials import ssh_keys
from accounts.models import Role, User
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace
from workspaces.cluster.wanted import authorized_keys
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


def add_key(actor: Actor) -> str:
    public = Ed25519PrivateKey.generate().public_key()
    return ssh_keys.add(
        actor, "laptop", public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    ).public_key


def keys_of(workspace: Workspace) -> list[str]:
    return authorized_keys(Workspace.objects.get(pk=workspace.pk))


def test_the_owners_keys_open_it(cast: Cast) -> None:
    workspace, key = make_workspace(cast, cast.bob), add_key(cast.bob)
    add_key(cast.alice)
    assert keys_of(workspace) == [key]


def test_admins_need_no_membership(cast: Cast) -> None:
    workspace, key = make_workspace(cast, cast.admin), add_key(cast.admin)
    assert keys_of(workspace) == [key]


def test_a_person_removed_from_a_tenant_loses_their_keys_there_alone(cast: Cast) -> None:
    members.set_role(cast.admin, cast.second, "bob", Role.MEMBER)
    workspace, key = make_workspace(cast, cast.bob), add_key(cast.bob)
    elsewhere = make_workspace(cast, cast.bob, name="exp-2")
    Workspace.objects.filter(pk=elsewhere.pk).update(tenant=cast.second)
    members.remove(cast.alice, cast.demo, "bob")
    assert keys_of(workspace) == []
    assert keys_of(elsewhere) == [key]


def test_a_viewer_has_no_keys_until_they_are_a_member_again(cast: Cast) -> None:
    workspace, key = make_workspace(cast, cast.bob), add_key(cast.bob)
    members.set_role(cast.alice, cast.demo, "bob", Role.VIEWER)
    assert keys_of(workspace) == []
    members.set_role(cast.alice, cast.demo, "bob", Role.MEMBER)
    assert keys_of(workspace) == [key]


def test_a_deactivated_person_has_no_keys_until_activated_again(cast: Cast) -> None:
    workspace, key = make_workspace(cast, cast.bob), add_key(cast.bob)
    for active in (False, True):
        Workspace.objects.update(dirty_since=None)
        members.set_active(cast.admin, User.objects.get(username="bob"), active=active)
        assert keys_of(workspace) == ([key] if active else [])
        workspace.refresh_from_db()
        assert workspace.dirty_since is not None  # the cluster gets the changed list
