"""All commands of `berth`."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from berth.cli import configuration, jobs, login, output, raw, sites, ssh, standing, workspaces
from berth.cli.exits import exit_of
from berth.errors import BerthError, NoAnswer, OtherVersion
from berth.version import VERSION


class Commands(TyperGroup):
    """Group that ends with the exit code of what went wrong."""

    def invoke(self, ctx: Any) -> Any:
        for kind in (OtherVersion, NoAnswer):
            warnings.simplefilter("always", kind)
        warnings.showwarning = _one_line
        try:
            return super().invoke(ctx)
        except BerthError as problem:
            output.error(problem)
            raise typer.Exit(exit_of(problem)) from None
        except (KeyboardInterrupt, typer.Abort):
            raise typer.Exit(130) from None


_warned = set[str]()


def _one_line(message: Warning | str, *_: Any, **__: Any) -> None:
    if str(message) not in _warned:
        _warned.add(str(message))
        output.say(f"berth: {message}")


app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"berth {VERSION}")
        raise typer.Exit


@app.callback()
def berth(
    url: Annotated[
        str, typer.Option("--url", help="Address of Berth, instead of the one signed in to.")
    ] = "",
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Berth from a terminal: GPU workspaces and jobs."""
    sites.Chosen.url = url


app.command()(login.login)
app.command()(login.logout)
app.command()(login.whoami)
app.command()(workspaces.launch)
app.command()(workspaces.ls)
app.command("open")(workspaces.open_)
app.command(context_settings={"allow_interspersed_args": False})(ssh.ssh)
app.command()(ssh.cp)
app.command("logs")(workspaces.log)
app.command()(workspaces.stop)
app.command()(workspaces.start)
app.command()(workspaces.extend)
app.command()(standing.queue)
app.command()(standing.quota)
app.command()(standing.usage)
app.command()(raw.api)
app.add_typer(jobs.jobs, name="jobs")
app.add_typer(configuration.configuration, name="configuration")
app.add_typer(ssh.keys, name="keys")


def main() -> None:
    app()
