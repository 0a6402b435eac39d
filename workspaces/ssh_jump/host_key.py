"""Host key of the jump: one for the whole installation, so that any number of processes are one host to ssh.

Made at the first start and kept encrypted, or read from the operator's file. Its public half is always in the row, for
the pages and the API to show.
"""

from __future__ import annotations

from pathlib import Path

import asyncssh
from django.db import transaction

from accounts.credentials.secrets import decrypt, encrypt
from accounts.locks import locked
from clusters.models import Installation
from workspaces.launch.keys import new_host_key


def ready_key(file: str) -> asyncssh.SSHKey:
    """Return the key to serve with. The first process creates it."""
    with transaction.atomic():
        row = locked(Installation.objects.all()).get()
        if not file and not row.ssh_jump_key:
            row.ssh_jump_key = encrypt(new_host_key()[0])
        text = Path(file).read_text() if file else decrypt(row.ssh_jump_key)
        key = asyncssh.import_private_key(text)
        row.ssh_jump_public_key = " ".join(key.export_public_key().decode().split()[:2])
        row.save(update_fields=["ssh_jump_key", "ssh_jump_public_key"])
    return key
