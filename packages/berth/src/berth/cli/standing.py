"""Commands that say how things stand: the queue, quotas, and what was used."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import typer

from berth.api import calls
from berth.api.calls import UsageRetrieveQuery
from berth.cli import output
from berth.cli.output import Json
from berth.cli.sites import connect

Tenant = Annotated[str | None, typer.Option(help="Only of this tenant.")]


def queue(tenant: Tenant = None, as_json: Json = False) -> None:
    """List what waits for GPUs: its place, when it starts, and why it waits."""
    query: dict[str, Any] = {"phase": ["waiting"], "tenant": tenant}
    with connect() as berth:
        found: list[Any] = [
            *({"kind": "workspace", **one} for one in berth.rows(calls.workspaces_list(**query))),
            *({"kind": "job", **one} for one in berth.rows(calls.jobs_list(**query))),
        ]
    found.sort(key=lambda one: (one["pool"], one["queue"]["position"] if one["queue"] else float("inf")))
    columns = ("POOL", "PLACE", "KIND", "NAME", "OWNER", "GPUS", "STARTS", "WHY")
    output.table(found, columns, (waits(one) for one in found))


def waits(one: Any) -> tuple[object, ...]:
    line = one["queue"] or {}
    why = line["reason"]["message"] if line else one["message"]
    starts = output.until(line.get("estimated_start")) or "?"
    return (
        one["pool"],
        line.get("position"),
        one["kind"],
        one["name"],
        one["owner"],
        f"{one['gpus']:g}",
        starts,
        why,
    )


def quota(tenant: Tenant = None, as_json: Json = False) -> None:
    """Show GPU quotas of your tenants by pool, and their other limits."""
    with connect() as berth:
        page = berth.send(calls.quotas_list(limit=500, **({"tenant": tenant} if tenant else {})))
    if output.Mode.as_json:
        output.print_json({"results": page["results"], "limits": page["limits"]})
        return
    columns = ("TENANT", "POOL", "USED", "OWN", "WITH BORROWING")
    rows = page["results"]
    output.table(
        rows,
        columns,
        (
            (
                one["tenant"],
                one["pool"],
                f"{one['used_gpus']:g}",
                f"{one['nominal_gpus']:g}",
                f"{one['limit_gpus']:g}",
            )
            for one in rows
        ),
    )
    limits = [
        (line["tenant"], name, f"{line[name]['used']:g}", line[name]["limit"])
        for line in page["limits"]
        for name in line
        if name != "tenant" and line[name]["limit"] is not None
    ]
    if limits:
        output.table(limits, ("TENANT", "LIMIT", "USED", "OF"), limits)


def usage(
    since: Annotated[
        datetime | None, typer.Option("--from", formats=["%Y-%m-%d"], help="First day, in UTC.")
    ] = None,
    to: Annotated[datetime | None, typer.Option("--to", formats=["%Y-%m-%d"], help="Last day.")] = None,
    by: Annotated[
        Literal["tenant", "user", "pool", "day"], typer.Option(help="Rows of the table.")
    ] = "tenant",
    tenant: Tenant = None,
    as_json: Json = False,
) -> None:
    """Show GPU-hours: allocated, and used of them."""
    query: UsageRetrieveQuery = {"group_by": by}
    if since:
        query["from"] = f"{since:%Y-%m-%d}"
    if to:
        query["to"] = f"{to:%Y-%m-%d}"
    if tenant:
        query["tenant"] = tenant
    with connect() as berth:
        report: Any = berth.send(calls.usage_retrieve(**query))
    if output.Mode.as_json:
        output.print_json(report)
        return
    rows = [*report["results"], {by: "total", **report["total"]}]
    columns = (by.upper(), "GPU-HOURS", "USED", "GIB-MONTHS")
    output.table(rows, columns, (figures(one, by) for one in rows))


def figures(one: Any, by: str) -> tuple[object, ...]:
    hours = (one["allocated_gpu_hours"], one["used_gpu_hours"], one["storage_gib_months"])
    return (one[by] or "others", *(None if value is None else f"{value:.1f}" for value in hours))
