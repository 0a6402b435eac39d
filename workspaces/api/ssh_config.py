"""SSH commands, and lines for ~/.ssh/config, that lead to a workspace. Pure text.

Host keys are kept under names of ours, never under addresses: an address may belong to another workspace tomorrow.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any

from accounts.addresses import bracketed
from workspaces.launch.keys import fingerprint
from workspaces.models import Workspace

SSH_PORT = 22  # default of ssh
Json = dict[str, Any]


@dataclass(frozen=True)
class Jump:
    """Berth's own SSH address, as people reach it."""

    name: str  # under which ssh keeps its host key
    host: str
    port: int
    public_key: str


def direct(workspace: Workspace, host: str, port: int) -> Json:
    """SSH to the workspace's own address."""
    user, alias = workspace.image.username, host_alias(workspace)
    nickname = host_nickname(workspace.name)
    with_port = "" if port == SSH_PORT else f"-p {port} "
    return {
        "host": host,
        "port": port,
        "user": user,
        "command": f"ssh {with_port}-o HostKeyAlias={alias} {user}@{host}",
        "config": _block(nickname, HostName=host, Port=port, User=user, HostKeyAlias=alias),
        "nickname": nickname,
        "host_key_fingerprint": workspace.secret.host_key_fingerprint,
        "vscode": f"vscode://vscode-remote/ssh-remote+{user}@{bracketed(host)}:{port}{workspace.image.home}",
    }


def through(workspace: Workspace, jump: Jump, *, nickname: str) -> Json:
    """SSH through Berth's jump, which finds the workspace by its id. VS Code needs the config for it."""
    user, alias, person = workspace.image.username, host_alias(workspace), workspace.owner.get_username()
    at_jump = shlex.quote(f"{person}@{bracketed(jump.host)}:{jump.port}")
    jump_block = _block(jump.name, HostName=jump.host, Port=jump.port, User=person, HostKeyAlias=jump.name)
    own_block = _block(nickname, HostName=alias, User=user, HostKeyAlias=alias, ProxyJump=jump.name)
    return {
        "host": alias,
        "port": SSH_PORT,
        "user": user,
        "command": f"ssh -J {at_jump} {user}@{alias}",
        "config": f"{jump_block}\n{own_block}",
        "nickname": nickname,
        "host_key_fingerprint": workspace.secret.host_key_fingerprint,
        "jump_host_key_fingerprint": fingerprint(jump.public_key),
        "vscode": f"vscode://vscode-remote/ssh-remote+{nickname}{workspace.image.home}",
    }


def _block(name: str, **options: Any) -> str:
    return f"Host {name}\n" + "".join(f"    {option} {value}\n" for option, value in options.items())


def host_alias(workspace: Workspace) -> str:
    return f"berth-{workspace.pk}"


def host_nickname(name: str) -> str:
    """Return the workspace's name as one word that ssh accepts as a host."""
    return "berth-" + re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-.").lower()
