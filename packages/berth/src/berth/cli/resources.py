"""Options that launches and jobs have in common, and the fields of a body that they become."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from berth import Client
from berth.cli import finding
from berth.cli.exits import usage

Tenant = Annotated[str | None, typer.Option(help="Tenant. May be left out if you are in one.")]
Image = Annotated[str | None, typer.Option(help="Image of the catalogue.")]
ImageReference = Annotated[str | None, typer.Option(help="A container image instead, where your team may.")]
Flavor = Annotated[str | None, typer.Option(help="A ready-made size.")]
Pool = Annotated[str | None, typer.Option(help="A pool, instead of a ready-made size.")]
Gpus = Annotated[float | None, typer.Option(help="GPUs, or a part of one.")]
GpuMemory = Annotated[int | None, typer.Option("--gpu-memory-mib", help="GPU memory in MiB.")]
Cpu = Annotated[float | None, typer.Option(help="CPU cores.")]
Memory = Annotated[int | None, typer.Option("--memory-mib", help="Memory in MiB.")]
MinGpuMemory = Annotated[
    int | None, typer.Option("--min-gpu-memory-mib", help="Any GPU with so much memory.")
]
Env = Annotated[list[str], typer.Option("--env", help="NAME=value; can be repeated.")]
SecretEnv = Annotated[
    list[str],
    typer.Option("--secret-env", help="NAME, whose value is taken from this environment; can be repeated."),
]
Volumes = Annotated[list[str], typer.Option("--volume", help="ID:/path or ID:/path:ro; can be repeated.")]
Repository = Annotated[str | None, typer.Option(help="Git address to clone into the home.")]
MaxRuntime = Annotated[
    int | None, typer.Option("--max-runtime-minutes", help="Minutes after which it is stopped.")
]


def body(berth: Client, given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a launch or job for options by their names; what was not given is left out."""
    given = dict(given)
    at_least = given.pop("min_gpu_memory_mib")
    finding.check_size(berth, given["flavor"], given["pool"], at_least)
    given |= {
        "gpu": {"min_memory_mib": at_least} if at_least else None,
        "env": variables(given["env"]),
        "secret_env": secrets(given["secret_env"]),
        "volumes": [mount(text) for text in given["volumes"]],
        "tenant": finding.tenant(berth, given["tenant"]),
    }
    if not given["image_reference"]:
        given["image"] = given["image"] or finding.image(berth)
    return {name: value for name, value in given.items() if value not in (None, {}, [])}


def variables(texts: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if wrong := [name for name, sign, _ in pairs if not sign]:
        raise usage(f"“{wrong[0]}” has no value: --env {wrong[0]}=value")
    return {name: value for name, _, value in pairs}


def secrets(names: list[str]) -> dict[str, str]:
    """Return values of the environment: on a command line, everybody on the machine could read them."""
    if missing := [name for name in names if name not in os.environ]:
        raise usage(f"{missing[0]} is not set in this environment.")
    return {name: os.environ[name] for name in names}


def mount(text: str) -> dict[str, Any]:
    volume, _, rest = text.partition(":")
    path, _, mode = rest.partition(":")
    if not path.startswith("/") or mode not in ("", "ro"):
        raise usage(f"“{text}” is not a volume: --volume ID:/path or ID:/path:ro")
    return {"volume": volume, "path": path, "read_only": mode == "ro"}
