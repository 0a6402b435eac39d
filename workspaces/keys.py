"""A workspace's own secrets: the SSH host key that stays the same over all its runs, and Jupyter's token."""

import base64
import hashlib
import json
import secrets

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from accounts.secrets import encrypt

from .models import Workspace, WorkspaceSecret


def make_secret(workspace: Workspace, env: dict[str, str]) -> WorkspaceSecret:
    """Create and store them, encrypted."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return WorkspaceSecret.objects.create(
        workspace=workspace,
        jupyter_token=encrypt(secrets.token_urlsafe(32)),
        host_key=encrypt(private.decode()),
        host_key_public=public.decode(),
        host_key_fingerprint=fingerprint(public.decode()),
        env=encrypt(json.dumps(env)),
    )


def fingerprint(public_key: str) -> str:
    """As `ssh-keygen -l` prints it: SHA256 of the key blob in unpadded base64."""
    blob = base64.b64decode(public_key.split()[1])
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
