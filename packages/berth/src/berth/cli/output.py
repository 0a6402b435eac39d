"""What is printed: results on standard output, all else on standard error; as JSON where it was asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from berth.cli.exits import Ended
from berth.errors import BerthError, Refused


class Mode:
    """How this run prints."""

    as_json = False


def _remember(value: bool) -> bool:
    Mode.as_json = value
    return value


Json = Annotated[bool, typer.Option("--json", help="Print JSON.", callback=_remember)]


def out() -> Console:
    return Console(highlight=False, soft_wrap=True)


def err() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a line for people, on standard error."""
    err().print(Text(text))


def show(result: Any, text: str = "") -> None:
    """Print a result: as JSON, or as the sentence that stands for it."""
    if Mode.as_json:
        print_json(result)
    elif text:
        out().print(Text(text))


def print_json(result: Any) -> None:
    typer.echo(json.dumps(result, indent=2, ensure_ascii=False))


def print_line(result: Any) -> None:
    """Print one of many results: one line of JSON each."""
    typer.echo(json.dumps(result, ensure_ascii=False))


def table(result: Sequence[Any], columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a list: as JSON; as a table in a terminal; else as lines with tabs, without a head."""
    cells = [[clean(cell) for cell in row] for row in rows]
    if Mode.as_json:
        print_json(result)
    elif not (console := out()).is_terminal:
        for row in cells:
            typer.echo("\t".join(row))
    elif cells:
        shown = Table(*columns, box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for row in cells:
            shown.add_row(*map(Text, row))
        Console(highlight=False).print(shown)
    else:
        console.print("Nothing.", style="dim")


def clean(cell: object) -> str:
    """Return a cell's text without control characters: names come from other people, and a terminal obeys some."""
    return "".join(one if one.isprintable() else " " for one in ("" if cell is None else str(cell)))


def error(problem: BerthError) -> None:
    """Print what went wrong, and what to do."""
    code = problem.code if isinstance(problem, Ended | Refused) else "unreachable"
    hint = problem.hint if isinstance(problem, Ended | Refused) else ""
    fields = problem.fields if isinstance(problem, Refused) else {}
    if Mode.as_json:
        told = {"code": code, "message": str(problem), "hint": hint, "fields": fields}
        typer.echo(json.dumps({"error": told}, ensure_ascii=False), err=True)
        return
    say(f"berth: {clean(problem)}")
    for name, texts in fields.items():
        say(f"  {name}: {clean(' '.join(texts))}")
    if hint:
        say(f"  {clean(hint)}")


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def until(text: str | None) -> str:
    """Return how far a time is away: `in 2 h`, `3 min ago`; empty without a time."""
    at = moment(text)
    if at is None:
        return ""
    seconds = (at - datetime.now(UTC)).total_seconds()
    return f"in {span(seconds)}" if seconds >= 0 else f"{span(-seconds)} ago"


def span(seconds: float) -> str:
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"
