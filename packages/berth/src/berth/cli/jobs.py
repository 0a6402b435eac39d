"""Commands for jobs: submit, list, cancel, and their logs."""

from __future__ import annotations

import time
from typing import Annotated, Any, cast
from uuid import uuid4

import typer

from berth import Client
from berth.api import calls
from berth.api.shapes import JobBody, JobShape
from berth.cli import finding, logs, output, resources
from berth.cli.exits import Ended, Exit, usage
from berth.cli.output import Json
from berth.cli.sites import connect

jobs = typer.Typer(help="Jobs: programs that run without you.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name or id of the job.", show_default=False)]
OVER = ("succeeded", "failed", "cancelled")
LOOK_SECONDS = 1.0
MOST_LOGS = 64
"""Parts and nodes whose logs are followed at once."""


@jobs.command()
def submit(
    name: Annotated[str, typer.Argument(help="Name of the new job.", show_default=False)],
    command: Annotated[
        list[str], typer.Argument(help="What runs, behind --: -- python train.py", show_default=False)
    ],
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
    env: resources.Env = [],  # noqa: B006  # typer copies it
    secret_env: resources.SecretEnv = [],  # noqa: B006
    volumes: resources.Volumes = [],  # noqa: B006
    repository: resources.Repository = None,
    max_runtime_minutes: resources.MaxRuntime = None,
    retries: Annotated[int | None, typer.Option(help="How often a failed part is tried again.")] = None,
    completions: Annotated[int | None, typer.Option(help="Parts that have to succeed.")] = None,
    parallelism: Annotated[int | None, typer.Option(help="Parts that run at once, at most.")] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it is over: exit code 7 if it failed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Submit a job: berth jobs submit train --flavor a100-1 -- python train.py"""
    given = {key: value for key, value in locals().items() if key not in ("wait", "as_json")}
    with connect() as berth:
        body = cast(JobBody, resources.body(berth, given))
        job = berth.send(calls.jobs_create(body), key=str(uuid4()))
        while wait and job["phase"] not in OVER:
            time.sleep(LOOK_SECONDS)
            job = berth.send(calls.jobs_retrieve(job["id"]))
    output.show(job, f"{job['name']}: {job['phase']}. {output.clean(job['message'])}")
    if wait and job["phase"] != "succeeded":
        raise Ended(Exit.FAILED, job["phase"], f"{job['name']}: {job['phase']}. {job['message']}")


@jobs.command()
def ls(
    everyone: Annotated[
        bool, typer.Option("--all", "-a", help="Also jobs of others that you can see.")
    ] = False,
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    phase: Annotated[list[str], typer.Option(help="Only in this phase; can be repeated.")] = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """List jobs."""
    with connect() as berth:
        owner = None if everyone else berth.send(calls.me_retrieve())["username"]
        query: dict[str, Any] = {"owner": owner, "tenant": tenant, "phase": phase or None}
        found = list(berth.rows(calls.jobs_list(**query)))
    columns = ("NAME", "PHASE", "PARTS", "SIZE", "TENANT", "OWNER", "SUBMITTED")
    output.table(found, columns, (row(job) for job in found))


def row(job: JobShape) -> tuple[object, ...]:
    indices = job["indices"]
    return (
        job["name"],
        job["phase"],
        f"{indices['succeeded']}/{indices['total']}",
        job["flavor"] or f"{job['pool']} × {job['gpus']:g}",
        job["tenant"],
        job["owner"],
        output.until(job["created_at"]),
    )


@jobs.command()
def cancel(name: Name, as_json: Json = False) -> None:
    """Cancel a job. What it wrote stays."""
    with connect() as berth:
        job = berth.send(calls.jobs_cancel_create(finding.job(berth, name)["id"]))
    output.show(job, f"{job['name']}: {job['phase']}.")


@jobs.command("logs")
def log(
    name: Name,
    follow: logs.Follow = False,
    tail: logs.Tail = logs.MOST_LINES,
    everything: logs.All = False,
    index: Annotated[int | None, typer.Option(help="Only this part.")] = None,
    as_json: Json = False,
) -> None:
    """Print what a job wrote; of several parts, each line behind its number."""
    with connect() as berth:
        job = finding.job(berth, name)
        count = 1 if index is not None else parts_of(job)
        wanted = [
            calls.jobs_logs_retrieve(job["id"]).asking(index=number)
            for number in (range(count) if count > 1 else [index])
        ]
        if len(wanted) > MOST_LOGS:
            raise usage(f"It has {count} logs: choose one with --index 0 to {count - 1}.")
        rest = logs.show(berth, wanted, tail=None if everything else tail, with_index=count > 1)
        if follow:
            logs.follow(berth, rest, lambda: is_over(berth, job["id"]), with_index=count > 1)


def parts_of(job: JobShape) -> int:
    """Number of logs: one for each node of each part."""
    nodes = job["distributed"].get("nodes", 1) if job["distributed"] else 1
    return job["indices"]["total"] * nodes


def is_over(berth: Client, id: str) -> bool:
    return berth.send(calls.jobs_retrieve(id))["phase"] in OVER
