"""Commands for admins: the configuration as a file, compared and applied."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from berth import Client
from berth.api import calls
from berth.api.shapes import DifferenceShape
from berth.cli import output
from berth.cli.exits import Exit, usage
from berth.cli.output import Json
from berth.cli.sites import connect, save

configuration = typer.Typer(help="What admins configure, as a YAML file.", no_args_is_help=True)
File = Annotated[str, typer.Argument(help="YAML file; - for standard input.", show_default=False)]


@configuration.command()
def get(
    target: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    as_json: Json = False,
) -> None:
    """Print the configuration, without secrets."""
    with connect() as berth:
        text = berth.send(calls.configuration_retrieve())
    if target is not None:
        save(target, text)
    elif output.Mode.as_json:
        output.print_json({"yaml": text})
    else:
        typer.echo(text, nl=False)


@configuration.command()
def diff(file: File, as_json: Json = False) -> None:
    """Show what applying a file would change: exit code 9 if it would change something."""
    text = content(file)
    with connect() as berth:
        difference = put(berth, text, dry_run=True)
    tell(difference)
    if size(difference):
        raise typer.Exit(Exit.DIFFERENT)


@configuration.command()
def apply(
    file: File,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Bring the configuration to what a file says, all of it or nothing."""
    text = content(file)
    with connect() as berth:
        if not yes:
            difference = put(berth, text, dry_run=True)
            if not size(difference):
                tell(difference)
                return
            confirm(difference, file)
        difference = put(berth, text, dry_run=False)
    if yes or output.Mode.as_json:
        tell(difference)


def confirm(difference: DifferenceShape, file: str) -> None:
    if file == "-" or not sys.stdin.isatty():
        raise usage(
            "Cannot ask for confirmation without a terminal.",
            "See berth configuration diff, then add --yes.",
        )
    for line in lines(difference):
        output.say(line)
    if not typer.confirm("Apply it?", err=True):
        raise typer.Exit(Exit.ERROR)


def put(berth: Client, text: str, *, dry_run: bool) -> DifferenceShape:
    return berth.send(calls.configuration_update(text.encode(), dry_run=dry_run))


def content(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise usage(f"{file} cannot be read: {problem}") from None


def size(difference: DifferenceShape) -> int:
    return len(difference["created"]) + len(difference["changed"]) + len(difference["deleted"])


def tell(difference: DifferenceShape) -> None:
    output.show(difference, "\n".join(lines(difference)) or "Nothing changes.")


def lines(difference: DifferenceShape) -> list[str]:
    """Return a line for each object, and for each field of one that changes."""
    found = [f"+ {name(one)}" for one in difference["created"]]
    for one in difference["changed"]:
        found.append(f"~ {name(one)}")
        found += [
            f"    {field}: {values['old']!r} → {values['new']!r}" for field, values in one["fields"].items()
        ]
    return [output.clean(line) for line in [*found, *(f"- {name(one)}" for one in difference["deleted"])]]


def name(one: Any) -> str:
    return f"{one['kind']} {one['key']}"
