"""A start, followed step by step until it is ready or has failed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from berth import Client
from berth.api import calls
from berth.api.shapes import WorkspaceShape
from berth.cli.exits import Ended, Exit
from berth.cli.output import clean, err

LOOK_SECONDS = 1.0
ENDS = ("ready", "failed", "deleting", "deleted")


def follow(berth: Client, workspace: WorkspaceShape, timeout: float | None) -> WorkspaceShape:
    """Show the ten steps until the workspace is ready, and return it. Raise Ended if it failed or took too long."""
    deadline = None if timeout is None else time.monotonic() + timeout
    with shown(err()) as steps:
        while True:
            steps.show(workspace)
            if workspace["phase"] in ENDS or workspace["desired"] != "running":
                break
            if deadline is not None and time.monotonic() > deadline:
                raise Ended(
                    Exit.TIMED_OUT, "timed_out", f"{workspace['name']} is not ready yet: {words(workspace)}",
                    "It goes on starting. berth ls shows how far it is.",
                )  # fmt: skip
            time.sleep(LOOK_SECONDS)
            workspace = berth.send(calls.workspaces_retrieve(workspace["id"]))
    if workspace["phase"] != "ready":
        raise failed(workspace)
    return workspace


def failed(workspace: WorkspaceShape) -> Ended:
    failure = workspace["failure"]
    if failure is None:
        return Ended(Exit.FAILED, workspace["phase"], f"{workspace['name']} is {workspace['phase']}.")
    return Ended(Exit.FAILED, failure["code"], failure["message"], failure["hint"])


def words(workspace: WorkspaceShape) -> str:
    """Return what is being waited for, in a sentence."""
    if problem := workspace["problem"]:
        return clean(f"{problem['message']} {problem['hint']}")
    if queue := workspace["queue"]:
        return clean(f"place {queue['position']} in the queue. {queue['reason']['message']}")
    return clean(workspace["message"])


class Steps:
    """Steps of one start, as lines where nobody watches a terminal."""

    def __init__(self) -> None:
        self.last = ("", "")

    def show(self, workspace: WorkspaceShape) -> None:
        progress = workspace["progress"]
        now = (f"{progress['index']}/{progress['total']} {progress['step']}", words(workspace))
        if now != self.last:
            self.last = now
            self.write(*now, progress["index"], progress["total"])

    def write(self, step: str, text: str, _done: int, _total: int) -> None:
        err().print(escape(f"{step}: {text}"))


class Bar(Steps):
    """The same as a bar, below which is what is being waited for."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        super().__init__()
        self.progress, self.task = progress, task

    def write(self, step: str, text: str, done: int, total: int) -> None:
        self.progress.update(self.task, completed=done, total=total, description=step, words=escape(text))


@contextmanager
def shown(console: Console) -> Iterator[Steps]:
    if not console.is_terminal:
        yield Steps()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", style="bold"),
        BarColumn(20),
        TimeElapsedColumn(),
    )
    with Progress(*columns, TextColumn("{task.fields[words]}"), console=console) as progress:
        yield Bar(progress, progress.add_task("", words="", total=10))
