"""Secrets of a workspace: the SSH host key, which stays the same over all its runs, and Jupyter's token."""

import base64
import hashlib
import json
import secrets

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from accounts.credentials.secrets import encrypt
from workloads.repositories import VARIABLE
from workspaces.models import HostKey, Workspace, WorkspaceSecret
from workspaces.naming import host_label

HOST_KEY = ("host_key", "host_key_public", "host_key_fingerprint")


def new_secrets(workspace: Workspace, env: dict[str, str]) -> dict[str, str]:
    """Return new secrets of a workspace, encrypted, by the fields of its row. The host key is that of its name."""
    private, public = new_host_key()
    new = {
        "host_key": encrypt(private),
        "host_key_public": public,
        "host_key_fingerprint": fingerprint(public),
    }
    return {
        "jupyter_token": encrypt(secrets.token_urlsafe(32)),
        "env": encrypt(json.dumps(env)),
        **_host_key_of_name(workspace, new),
    }


def make_secret(workspace: Workspace, env: dict[str, str]) -> WorkspaceSecret:
    """Store new secrets of a workspace, also of one that was deleted and had others."""
    new = new_secrets(workspace, env)
    return WorkspaceSecret.objects.update_or_create(workspace=workspace, defaults=new)[0]


def keep_host_key(workspace: Workspace) -> None:
    """Keep the workspace's host key for its name, unless that has one."""
    secret = WorkspaceSecret.objects.filter(workspace=workspace).exclude(host_key="").first()
    if secret is not None:
        _host_key_of_name(workspace, {field: getattr(secret, field) for field in HOST_KEY})


def take_host_key(workspace: Workspace) -> None:
    """Give the workspace the host key of its name, which was perhaps another's before a rename. For its next run: what
    runs keeps the key that it began with."""
    of_name = HostKey.objects.filter(owner_id=workspace.owner_id, host=host_label(workspace.name)).first()
    secret = WorkspaceSecret.objects.filter(workspace=workspace).first()
    if of_name and secret and secret.host_key_public != of_name.host_key_public:
        for field in HOST_KEY:
            setattr(secret, field, getattr(of_name, field))
        secret.save(update_fields=HOST_KEY)


def _host_key_of_name(workspace: Workspace, new: dict[str, str]) -> dict[str, str]:
    """Return the host key of the workspace's name by its fields; `new` becomes it if there is none."""
    name = {"owner_id": workspace.owner_id, "host": host_label(workspace.name)}
    HostKey.objects.bulk_create([HostKey(**name, **new)], ignore_conflicts=True)
    kept = HostKey.objects.get(**name)
    return {field: getattr(kept, field) for field in HOST_KEY}


def forget_secrets(workspace: Workspace) -> None:
    """Blank all that a deleted workspace kept for its owner alone. The caller saves the workspace."""
    keep_host_key(workspace)
    workspace.env, workspace.repository, workspace.next_settings = {}, "", {}
    blank = dict.fromkeys(("jupyter_token", "env", "next_env", *HOST_KEY), "")
    WorkspaceSecret.objects.filter(workspace=workspace).update(**blank, handed_to=[])


def new_host_key() -> tuple[str, str]:
    """Create an ed25519 key. Return private and public part in OpenSSH's formats."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode()


def fingerprint(public_key: str) -> str:
    """Fingerprint as `ssh-keygen -l` prints it: SHA256 of the key blob in unpadded base64."""
    blob = base64.b64decode(public_key.split()[1])
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def whole_address(workspace: Workspace) -> str:
    """Return the repository's address with its credentials, for the workspace's owner alone."""
    return workspace.secret.clear_env().get(VARIABLE, workspace.repository)
