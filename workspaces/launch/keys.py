"""Secrets of a workspace: the SSH host key, which stays the same over all its runs, and Jupyter's token."""

import base64
import hashlib
import json
import secrets

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from accounts.credentials.secrets import encrypt
from workloads.repositories import VARIABLE
from workspaces.models import Workspace, WorkspaceSecret


def new_secrets(env: dict[str, str]) -> dict[str, str]:
    """Return new secrets of a workspace, encrypted, by the fields of its WorkspaceSecret."""
    private, public = new_host_key()
    return {
        "jupyter_token": encrypt(secrets.token_urlsafe(32)),
        "host_key": encrypt(private),
        "host_key_public": public,
        "host_key_fingerprint": fingerprint(public),
        "env": encrypt(json.dumps(env)),
    }


def make_secret(workspace: Workspace, env: dict[str, str]) -> WorkspaceSecret:
    """Store new secrets of a workspace, also of one that was deleted and had others."""
    return WorkspaceSecret.objects.update_or_create(workspace=workspace, defaults=new_secrets(env))[0]


def forget_secrets(workspace: Workspace) -> None:
    """Blank all that a deleted workspace kept for its owner alone. The caller saves the workspace."""
    workspace.env, workspace.repository, workspace.next_settings = {}, "", {}
    blank = {
        "jupyter_token": "",
        "host_key": "",
        "host_key_public": "",
        "host_key_fingerprint": "",
        "env": "",
        "next_env": "",
    }
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
