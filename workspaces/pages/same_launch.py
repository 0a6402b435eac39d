"""The same launch for a script: the API's body, and a curl command. Secrets stay names with a value to fill in,
and credentials are left out of a repository's address.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

from accounts.access import Actor
from storage.models import LATEST
from storage.mounts.mounting import MountWish, all_of, wished
from workloads.figures import number
from workloads.repositories import without_credentials
from workloads.sizes.sizing import Size
from workspaces import access
from workspaces.models import Workspace

from .forms import LaunchForm

TO_FILL_IN = "…"


def curl(address: str, body: dict[str, Any]) -> str:
    return (
        f"curl -X POST {address} \\\n"
        '  -H "Authorization: Bearer $BERTH_TOKEN" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(json.dumps(body, ensure_ascii=False))}"
    )


def body_of_form(form: LaunchForm) -> dict[str, Any]:
    """Body from the fields that are filled in so far and valid."""
    data = form.cleaned_data
    body = {name: data.get(name) or TO_FILL_IN for name in ("tenant", "name", "image")}
    if not form.size_faults:
        body |= _size_of_form(form)
    return body | _filled(
        disk_mib=(data.get("disk_gib") or 0) * 1024,
        volumes=[_mount(wish) for wish in form.mounts()],
        connections=[str(pk) for pk in data.get("connections") or ()],
        max_runtime_minutes=data.get("max_runtime_minutes"),
        repository=without_credentials(data.get("repository") or ""),
        env=data.get("env"),
        secret_env=dict.fromkeys(data.get("secret_env") or {}, TO_FILL_IN),
        **({} if data.get("notify") else {"notify": False}),
    )


def _size_of_form(form: LaunchForm) -> dict[str, Any]:
    asked = form.size()
    if asked.flavor:
        return {"flavor": asked.flavor}
    figures = _filled(
        gpus=number(float(asked.gpus)) if asked.gpus is not None else None,
        gpu_memory_mib=asked.gpu_memory_mib,
        cpu=number(asked.cpu_millicores / 1000) if asked.cpu_millicores else None,
        memory_mib=asked.memory_mib,
    )
    if asked.gpu is None:
        return {"pool": asked.pool, **figures}
    wanted = _filled(
        min_memory_mib=asked.gpu.min_memory_mib,
        min_compute_capability=asked.gpu.min_compute_capability,
        ecc=asked.gpu.ecc,
    )
    return {"gpu": wanted, **figures}


def body_of_workspace(actor: Actor, workspace: Workspace) -> dict[str, Any]:
    """Body of the workspace's launch. Environment and repository are included only for the owner."""
    own = access.is_own(actor, workspace)
    body: dict[str, Any] = {
        "tenant": workspace.tenant.slug,
        "name": workspace.name,
        "image": workspace.image.slug,
    }
    if workspace.flavor:
        body["flavor"] = workspace.flavor.slug
    else:
        asked = Size.of(workspace).asked()
        body |= {
            "pool": workspace.pool.slug,
            "gpus": number(round(float(asked.gpus or 0), 4)),
            **_filled(gpu_memory_mib=asked.gpu_memory_mib),
            "cpu": number(workspace.cpu_millicores / 1000),
            "memory_mib": workspace.memory_mib,
        }
    return body | _filled(
        disk_mib=workspace.disk_mib,
        volumes=[_mount(wish) for _name, wish in wished(all_of([workspace.pk]).get(workspace.pk, ()))],
        max_runtime_minutes=workspace.max_runtime_minutes,
        env=workspace.env if own else None,
        repository=without_credentials(workspace.repository) if own else None,
        **({} if workspace.notify else {"notify": False}),
    )


def _mount(wish: MountWish) -> dict[str, Any]:
    version = (
        {"version": wish.version if wish.version == LATEST else int(wish.version)} if wish.version else {}
    )
    return {"volume": str(wish.volume), "path": wish.path, "read_only": wish.read_only, **version}


def _filled(**values: Any) -> dict[str, Any]:
    """Leave out empty values, but keep False."""
    return {name: value for name, value in values.items() if value or value is False}
