"""Commands for workspaces: launch, list, open, start, stop, extend, and their logs."""

from __future__ import annotations

import webbrowser
from typing import Annotated, Any, cast
from uuid import uuid4

import typer

from berth import Client
from berth.api import calls
from berth.api.shapes import LaunchBody, WorkspaceShape
from berth.cli import finding, logs, output, resources, steps
from berth.cli.exits import Ended, Exit
from berth.cli.output import Json
from berth.cli.sites import connect

Name = Annotated[str, typer.Argument(help="Name or id of the workspace.", show_default=False)]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Follow the start until it is ready.")]
Timeout = Annotated[float | None, typer.Option(help="Seconds to wait at most; what was started goes on.")]
OVER = ("stopped", "failed", "deleting", "deleted")


def launch(
    name: Annotated[str, typer.Argument(help="Name of the new workspace.", show_default=False)],
    tenant: resources.Tenant = None,
    image: resources.Image = None,
    image_reference: resources.ImageReference = None,
    flavor: resources.Flavor = None,
    pool: resources.Pool = None,
    gpus: resources.Gpus = None,
    gpu_memory_mib: resources.GpuMemory = None,
    min_gpu_memory_mib: resources.MinGpuMemory = None,
    cpu: resources.Cpu = None,
    memory_mib: resources.Memory = None,
    disk_mib: Annotated[int | None, typer.Option("--disk-mib", help="Size of a local disk in MiB.")] = None,
    env: resources.Env = [],  # noqa: B006  # typer copies it
    secret_env: resources.SecretEnv = [],  # noqa: B006
    volumes: resources.Volumes = [],  # noqa: B006
    repository: resources.Repository = None,
    max_runtime_minutes: resources.MaxRuntime = None,
    idle_minutes: Annotated[
        int | None, typer.Option("--idle-minutes", help="Minutes without use after which it is stopped.")
    ] = None,
    wait: Wait = True,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Launch a workspace, and follow the ten steps of its start."""
    given = {key: value for key, value in locals().items() if key not in ("wait", "timeout", "as_json")}
    with connect() as berth:
        body = cast(LaunchBody, resources.body(berth, given))
        workspace = berth.send(calls.workspaces_create(body), key=str(uuid4()))
        if wait:
            workspace = steps.follow(berth, workspace, timeout)
    output.show(workspace, sentence(workspace))


def sentence(workspace: WorkspaceShape) -> str:
    name = workspace["name"]
    if workspace["phase"] == "ready":
        return f"{name} is ready. berth open {name} · berth ssh {name}"
    return f"{name}: {workspace['phase']}. {steps.words(workspace)}"


def ls(
    everyone: Annotated[
        bool, typer.Option("--all", "-a", help="Also workspaces of others that you can see.")
    ] = False,
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    phase: Annotated[list[str], typer.Option(help="Only in this phase; can be repeated.")] = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """List workspaces."""
    with connect() as berth:
        owner = None if everyone else berth.send(calls.me_retrieve())["username"]
        query: dict[str, Any] = {"owner": owner, "tenant": tenant, "phase": phase or None}
        found = list(berth.rows(calls.workspaces_list(**query)))
    columns = ("NAME", "PHASE", "SIZE", "IMAGE", "TENANT", "OWNER", "ENDS")
    output.table(found, columns, (row(workspace) for workspace in found))


def row(workspace: WorkspaceShape) -> tuple[object, ...]:
    size = workspace["flavor"] or f"{workspace['pool']} × {workspace['gpus']:g}"
    phase, queue = workspace["phase"], workspace["queue"]
    return (
        workspace["name"],
        f"{phase} ({queue['position']})" if queue else phase,
        size,
        workspace["image"],
        workspace["tenant"],
        workspace["owner"],
        output.until(workspace["stops_at"]),
    )


def open_(name: Name, as_json: Json = False) -> None:
    """Open JupyterLab of a ready workspace in the browser."""
    with connect() as berth:
        workspace = finding.workspace(berth, name)
    url = workspace["endpoints"]["jupyter"]
    if url is None:
        raise not_ready(workspace)
    if not output.Mode.as_json:
        webbrowser.open(url)
    output.show({"url": url}, url)


def not_ready(workspace: WorkspaceShape) -> Ended:
    if workspace["phase"] == "ready":
        return Ended(Exit.FAILED, "not_yours", f"{workspace['name']} can be opened by its owner alone.")
    return Ended(
        Exit.FAILED,
        "not_ready",
        f"{workspace['name']} is not ready: {workspace['phase']}.",
        steps.words(workspace),
    )


def start(name: Name, wait: Wait = True, timeout: Timeout = None, as_json: Json = False) -> None:
    """Start a stopped workspace."""
    with connect() as berth:
        workspace = berth.send(calls.workspaces_start_create(finding.workspace(berth, name)["id"]))
        if wait:
            workspace = steps.follow(berth, workspace, timeout)
    output.show(workspace, sentence(workspace))


def stop(name: Name, as_json: Json = False) -> None:
    """Stop a workspace. Its files stay."""
    with connect() as berth:
        workspace = berth.send(calls.workspaces_stop_create(finding.workspace(berth, name)["id"]))
    output.show(workspace, f"{workspace['name']} stops. Its files stay.")


def extend(
    name: Name,
    minutes: Annotated[int | None, typer.Option(help="Minutes; default: the same lifetime again.")] = None,
    as_json: Json = False,
) -> None:
    """Move the end of a workspace."""
    with connect() as berth:
        body: Any = {} if minutes is None else {"minutes": minutes}
        workspace = berth.send(calls.workspaces_extend_create(finding.workspace(berth, name)["id"], body))
    end = output.until(workspace["stops_at"])
    output.show(
        workspace, f"{workspace['name']} stops {end}." if end else f"{workspace['name']} has no end time."
    )


def log(
    name: Name,
    follow: logs.Follow = False,
    tail: logs.Tail = logs.MOST_LINES,
    everything: logs.All = False,
    as_json: Json = False,
) -> None:
    """Print what a workspace wrote."""
    with connect() as berth:
        workspace = finding.workspace(berth, name)
        wanted = [calls.workspaces_logs_retrieve(workspace["id"], lines=True)]
        rest = logs.show(berth, wanted, tail=None if everything else tail)
        if follow:
            logs.follow(berth, rest, lambda: is_over(berth, workspace["id"]))


def is_over(berth: Client, id: str) -> bool:
    return berth.send(calls.workspaces_retrieve(id))["phase"] in OVER
