"""Input for the objects of one run of a workspace, gathered from rows before anything is applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from accounts.credentials.secrets import decrypt
from accounts.models import SSHKey
from clusters import labels
from quotas.models import Claim
from workloads.pods import wanted
from workloads.pods.wanted import Shared
from workspaces.access import owner_may_use
from workspaces.models import ShareRole, Workspace
from workspaces.state import jupyter


@dataclass(frozen=True, kw_only=True)
class Wanted(wanted.Wanted):
    """Input for the objects of one run. What takes queries or secrets is read when it is needed."""

    workload: Workspace

    @property
    def workspace(self) -> Workspace:
        return self.workload

    @cached_property
    def unwell_nodes(self) -> Mapping[str, str]:
        return {} if self.workspace.ready_at else self.shared.unwell_nodes(self.workspace.pool)

    @cached_property
    def secret(self) -> SecretValues:
        """Values in clear, made only when they are needed."""
        return secret_values(self.workspace, self.shared.connections.get(self.workspace.pk, {}))

    @property
    def secret_env(self) -> Mapping[str, str]:
        return self.secret.env

    @property
    def name(self) -> str:
        return self.workspace.object_name

    @property
    def secret_name(self) -> str:
        return self.name

    @property
    def labels(self) -> dict[str, str]:
        return super().labels | {labels.WORKSPACE: str(self.workspace.pk)}


@dataclass(frozen=True, kw_only=True, repr=False)
class SecretValues:
    """Clear values for the Secret, which repr does not show."""

    jupyter_token: str
    gateway_token: str
    host_key: str
    authorized_keys: Sequence[str]
    # Of those with whom it is shared to work: taken from inside the pod only, where Berth's jump comes in.
    colleague_keys: Sequence[str] = ()
    env: Mapping[str, str]


def wanted_of(workspace: Workspace, claim: Claim, shared: Shared) -> Wanted:
    return Wanted(
        workload=workspace,
        instance=shared.instance,
        run=claim.pk,
        node=claim.node,
        requested_cpu_millicores=claim.cpu_millicores,
        requested_memory_mib=claim.memory_mib,
        extra=claim.extra,
        shared=shared,
    )


def secret_values(workspace: Workspace, of_connections: Mapping[str, str]) -> SecretValues:
    """Return what goes into the Secret. What the person set themselves comes before what a connection brings."""
    secret = workspace.secret
    brought = {name: value for name, value in of_connections.items() if name not in workspace.env}
    return SecretValues(
        jupyter_token=jupyter.token(workspace),
        gateway_token=jupyter.gateway_token(workspace),
        host_key=decrypt(secret.host_key),
        authorized_keys=authorized_keys(workspace),
        colleague_keys=colleague_keys(workspace),
        env=brought | secret.clear_env(),
    )


def colleague_keys(workspace: Workspace) -> list[str]:
    """SSH keys of those with whom the workspace is shared to work."""
    shares = workspace.shares.filter(role=ShareRole.WORK, given_by=workspace.owner_id, user__is_active=True)
    keys = SSHKey.objects.filter(user__in=shares.values("user"))
    return list(keys.order_by("user", "pk").values_list("public_key", flat=True))


def authorized_keys(workspace: Workspace) -> list[str]:
    """SSH keys of the owner; none once they were deactivated, removed from the tenant, or became a viewer."""
    if not owner_may_use(workspace):
        return []
    return list(workspace.owner.ssh_keys.values_list("public_key", flat=True))
