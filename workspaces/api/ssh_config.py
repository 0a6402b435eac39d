"""SSH commands, and lines for ~/.ssh/config, that lead to a workspace. Pure text.

Host keys are kept under names of ours, never under addresses: an address may belong to another workspace tomorrow.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from accounts.addresses import bracketed
from workloads.models import Image
from workspaces.launch.keys import fingerprint
from workspaces.models import Workspace
from workspaces.naming import host_label

SSH_PORT = 22  # default of ssh
DOMAIN = "berth"  # the jump alone knows it
FILE = "berth.config"  # in ~/.ssh, with the lines for all of a person's workspaces
# User of the lines for all of a person's workspaces. Commands name the user of any other image.
USER = str(Image._meta.get_field("username").get_default())
Json = dict[str, Any]


@dataclass(frozen=True)
class Jump:
    """Berth's own SSH address, as people reach it."""

    name: str  # under which ssh keeps its host key
    host: str
    port: int
    public_key: str


def direct(workspace: Workspace) -> Json:
    """SSH to the workspace's own address."""
    host, port = workspace.host, workspace.ssh_port
    user, alias = workspace.image.username, host_alias(workspace.pk)
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
        "known_hosts": _known(alias, workspace.secret.host_key_public),
        "vscode": f"vscode://vscode-remote/ssh-remote+{user}@{bracketed(host)}:{port}{workspace.image.home}",
    }


def through(workspace: Workspace, jump: Jump, *, nickname: str, person: str) -> Json:
    """SSH of this person through Berth's jump, which finds the workspace by its id. VS Code needs the config for it."""
    user, alias = workspace.image.username, host_alias(workspace.pk)
    at_jump = shlex.quote(f"{person}@{bracketed(jump.host)}:{jump.port}")
    own_block = _block(nickname, HostName=alias, User=user, HostKeyAlias=alias, ProxyJump=jump.name)
    return {
        "host": alias,
        "port": SSH_PORT,
        "user": user,
        "command": f"ssh -J {at_jump} {user}@{alias}",
        "config": f"{_jump_block(jump, person)}\n{own_block}",
        "nickname": nickname,
        "vscode": f"vscode://vscode-remote/ssh-remote+{nickname}{workspace.image.home}",
    } | _host_keys(workspace, jump, alias)


def by_name(workspace: Workspace, jump: Jump, *, is_shared: bool) -> Json:
    """SSH through the jump to a host name that stays the same, by `config_of_all`.

    `is_shared`: another workspace of the person has the same name, so the id takes its place.
    """
    user, person = workspace.image.username, workspace.owner
    label = str(workspace.pk) if is_shared else host_label(workspace.name)
    host = f"{label}.{domain_of(person.get_username(), person.pk)}"
    destination = host if user == USER else f"{user}@{host}"
    return {
        "host": host,
        "port": SSH_PORT,
        "user": user,
        "command": f"ssh {destination}",
        "config": config_of_all(person.get_username(), person.pk, jump),
        "nickname": host,
        "vscode": f"vscode://vscode-remote/ssh-remote+{destination}{workspace.image.home}",
    } | _host_keys(workspace, jump, host)


def config_of_all(username: str, user_id: UUID, jump: Jump) -> str:
    """Lines that lead to all of a person's workspaces, present and future.

    ssh keeps each host key under the workspace's host name, as HostKeyAlias would: through a jump it knows no address.
    """
    all_block = _block(f"*.{domain_of(username, user_id)}", User=USER, ProxyJump=jump.name)
    return f"{_jump_block(jump, username)}\n{all_block}"


def domain_of(username: str, user_id: UUID) -> str:
    """Return the domain of a person's workspaces: their name as one label, else a part of their id."""
    label = re.sub(r"[^a-z0-9]+", "-", username.lower()).strip("-")
    return f"{label or user_id.hex[:8]}.{DOMAIN}"


def _jump_block(jump: Jump, person: str) -> str:
    return _block(jump.name, HostName=jump.host, Port=jump.port, User=person, HostKeyAlias=jump.name)


def _host_keys(workspace: Workspace, jump: Jump, alias: str) -> Json:
    """Return host keys of both, for people and for ssh. `alias`: name under which ssh keeps the workspace's."""
    public = workspace.secret.host_key_public
    return {
        "host_key_fingerprint": workspace.secret.host_key_fingerprint,
        "jump_host_key_fingerprint": fingerprint(jump.public_key),
        "known_hosts": _known(jump.name, jump.public_key) + _known(alias, public),
    }


def _known(name: str, public_key: str) -> str:
    """Return a line of a known_hosts file."""
    return " ".join([name, *public_key.split()[:2]]) + "\n"


def _block(name: str, **options: Any) -> str:
    return f"Host {name}\n" + "".join(f"    {option} {value}\n" for option, value in options.items())


def host_alias(workspace_id: UUID) -> str:
    return f"berth-{workspace_id}"


def host_nickname(name: str) -> str:
    """Return the workspace's name as one word that ssh accepts as a host."""
    return f"berth-{host_label(name)}"
