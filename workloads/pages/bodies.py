"""The same for a script: the API's body, and a curl command. Secrets stay names with a value to fill in,
and credentials are left out of a repository's address.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

from storage.models import LATEST
from storage.mounts.mounting import MountWish
from workloads.figures import number
from workloads.models import Workload
from workloads.repositories import without_credentials
from workloads.sizes.sizing import Size

from .forms import WorkloadForm
from .images import OWN

TO_FILL_IN = "…"


def curl(address: str, body: dict[str, Any]) -> str:
    return (
        f"curl -X POST {address} \\\n"
        '  -H "Authorization: Bearer $BERTH_TOKEN" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(json.dumps(body, ensure_ascii=False))}"
    )


def body_of_form(form: WorkloadForm) -> dict[str, Any]:
    """Body from the fields that are filled in so far and valid."""
    data = form.cleaned_data
    image = "image_reference" if data.get("image") == OWN else "image"
    body = {name: data.get(name) or TO_FILL_IN for name in ("tenant", "name", image)}
    if not form.size_faults:
        body |= _size_of_form(form)
    return body | filled(
        volumes=[mount_body(wish) for wish in form.mounts()],
        connections=[str(pk) for pk in data.get("connections") or ()],
        max_runtime_minutes=data.get("max_runtime_minutes"),
        repository=without_credentials(data.get("repository") or ""),
        env=data.get("env"),
        secret_env=dict.fromkeys(data.get("secret_env") or {}, TO_FILL_IN),
        **({} if data.get("notify") else {"notify": False}),
    )


def _size_of_form(form: WorkloadForm) -> dict[str, Any]:
    asked = form.size()
    if asked.flavor:
        return {"flavor": asked.flavor}
    figures = filled(
        gpus=number(float(asked.gpus)) if asked.gpus is not None else None,
        gpu_memory_mib=asked.gpu_memory_mib,
        cpu=number(asked.cpu_millicores / 1000) if asked.cpu_millicores else None,
        memory_mib=asked.memory_mib,
    )
    if asked.gpu is None:
        return {"pool": asked.pool, **figures}
    wanted = filled(
        min_memory_mib=asked.gpu.min_memory_mib,
        min_compute_capability=asked.gpu.min_compute_capability,
        ecc=asked.gpu.ecc,
    )
    return {"gpu": wanted, **figures}


def size_of_row(row: Workload) -> dict[str, Any]:
    """Fields of a body that ask for the row's size again."""
    if row.flavor:
        return {"flavor": row.flavor.slug}
    asked = Size.of(row).asked()
    return {
        "pool": row.pool.slug,
        "gpus": number(round(float(asked.gpus or 0), 4)),
        **filled(gpu_memory_mib=asked.gpu_memory_mib),
        "cpu": number(row.cpu_millicores / 1000),
        "memory_mib": row.memory_mib,
    }


def mount_body(wish: MountWish) -> dict[str, Any]:
    version = (
        {"version": wish.version if wish.version == LATEST else int(wish.version)} if wish.version else {}
    )
    return {"volume": str(wish.volume), "path": wish.path, "read_only": wish.read_only, **version}


def filled(**values: Any) -> dict[str, Any]:
    """Leave out empty values, but keep False."""
    return {name: value for name, value in values.items() if value or value is False}
