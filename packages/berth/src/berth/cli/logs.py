"""Lines of logs: the last ones, and those that follow, also over a restart of Berth's web process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import typer

from berth import Client
from berth.api.call import Call, Page
from berth.api.shapes import LineShape
from berth.cli import output

LOOK_SECONDS = 1.0
PATIENCE_SECONDS = 3600.0
"""Time for which `logs -f` waits for a Berth that does not answer."""
MOST_LINES = 500
"""Lines that one request can ask for."""
Log = Call[Page[LineShape]]
Tail = Annotated[int, typer.Option("--tail", "-n", help="How many of the last lines.", min=1, max=MOST_LINES)]
All = Annotated[bool, typer.Option("--all", help="The whole log.")]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Go on with what comes, until it ends or Ctrl-C.")
]


def show(berth: Client, logs: Sequence[Log], *, tail: int | None, with_index: bool = False) -> list[Log]:
    """Print logs, their last lines or all of them; return the calls for what follows each."""
    if tail is None:
        return [_written(log, berth.rows(log.asking(limit=MOST_LINES)), with_index) for log in logs]
    return [
        _written(log, berth.send(log.asking(tail=tail, lines=True))["results"], with_index) for log in logs
    ]


def follow(
    berth: Client, logs: Sequence[Log], is_over: Callable[[], bool], *, with_index: bool = False
) -> None:
    """Print lines as they come, and wait longer for Berth than other commands do.

    Each request names the last line of its log, so none is lost or comes twice.

    Each log is asked for by itself: their clocks differ, so a line of one may be older than the last of another.
    """
    berth.patience = PATIENCE_SECONDS
    while True:
        ends = is_over()  # asked before the lines, so that all that was written before the end comes
        logs = [_written(log, berth.rows(log.asking(limit=MOST_LINES)), with_index) for log in logs]
        if ends:
            return
        time.sleep(LOOK_SECONDS)


def _written(log: Log, lines: Iterable[LineShape], with_index: bool) -> Log:
    for line in lines:
        log = log.asking(after=line["after"])
        _write(line, with_index)
    return log


def _write(line: LineShape, with_index: bool) -> None:
    if output.Mode.as_json:
        output.print_line(line)
        return
    text = line["text"].rstrip("\r\n")
    typer.echo(f"{line['index']}: {text}" if with_index else text)
