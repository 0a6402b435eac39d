"""SSH to workspaces with the `ssh` and `scp` of this machine.

The lines for ssh are those that Berth offers as `berth.config`, in a file of that name beside ssh's own configuration,
which gets one line that includes it. Host keys come from Berth, so ssh asks about none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from berth.api import calls
from berth.api.shapes import JumpSSHShape, SSHShape, WorkspaceShape
from berth.cli import finding, output
from berth.cli.exits import Ended, Exit, usage
from berth.cli.output import Json
from berth.cli.sites import connect, save
from berth.cli.workspaces import Name, not_ready

FILE, KNOWN = "berth.config", "berth_known_hosts"
SETTING = "BERTH_SSH_CONFIG"
PUBLIC_KEY = re.compile(r"(ssh-|ecdsa-|sk-)\S+ .+")
keys = typer.Typer(help="SSH keys that open your workspaces.", no_args_is_help=True)


def ssh(
    name: Name,
    command: Annotated[list[str], typer.Argument(help="Command to run there; without: a shell.")] = [],  # noqa: B006
) -> None:
    """Open a shell in a workspace, or run a command there. Options of ssh stand before the command."""
    run("ssh", [*options(), ready(name), *command])


def cp(
    sources: Annotated[
        list[str], typer.Argument(help="Files here, or NAME:path in a workspace; the last is the target.")
    ],
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Folders with all that is in them.")
    ] = False,
) -> None:
    """Copy files to a workspace or from it, by scp: berth cp data.csv exp-1:work/"""
    if len(sources) < 2:
        raise usage("Say what to copy, and where to: berth cp data.csv exp-1:work/")
    hosts: dict[str, str] = {}
    paths = [place(text, hosts) for text in sources]
    if not hosts:
        raise usage("Neither is in a workspace: write NAME:path.")
    run("scp", [*options(), *(["-r"] if recursive else []), "--", *paths])


def place(text: str, hosts: dict[str, str]) -> str:
    """Return a path for scp. `hosts`: destinations of workspaces that are known already."""
    name, colon, path = text.partition(":")
    if not colon or "/" in name:
        return text if not text.startswith("-") else f"./{text}"
    if name not in hosts:
        hosts[name] = ready(name)
    return f"{hosts[name]}:{path}"


def ready(name: str) -> str:
    """Return the destination of a workspace, which ssh's configuration knows then. Raise Ended if it is not ready."""
    with connect() as berth:
        workspace = finding.workspace(berth, name)
    way = best_way(workspace)
    configure(way)
    return f"{way['user']}@{way['nickname']}"


def best_way(workspace: WorkspaceShape) -> SSHShape | JumpSSHShape:
    way = workspace["endpoints"]["ssh"]
    if way is None:
        raise not_ready(workspace)
    return way["by_name"] or way


def configure(way: SSHShape | JumpSSHShape) -> None:
    """Write the lines of a way, and its host keys, beside ssh's configuration."""
    main = config_file()
    own, known = main.with_name(FILE), main.with_name(KNOWN)
    merge(known, by_first_word(way["known_hosts"].splitlines()), by_first_word(lines_of(known)))
    keys_from = f"    UserKnownHostsFile {word(known)} {word(main.with_name('known_hosts'))}\n"
    blocks = {head: text + keys_from for head, text in blocks_of(way["config"]).items()}
    merge(own, blocks, blocks_of("\n".join(lines_of(own))))
    include(main, own)


def config_file() -> Path:
    return Path(os.environ.get(SETTING) or Path.home() / ".ssh" / "config").expanduser().absolute()


def options() -> list[str]:
    """Return the options of ssh and scp that name its configuration, where it is not the usual one."""
    return ["-F", str(config_file())] if os.environ.get(SETTING) else []


def word(path: Path) -> str:
    """Return a path as one word of ssh's configuration."""
    text = path.as_posix()
    return f'"{text}"' if re.search(r"\s", text) else text


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def by_first_word(lines: Iterable[str]) -> dict[str, str]:
    return {line.split()[0]: f"{line}\n" for line in lines if line.strip()}


def blocks_of(config: str) -> dict[str, str]:
    """Return the blocks of a configuration by their `Host` lines."""
    blocks = re.split(r"(?m)^(?=Host )", config)
    return {block.splitlines()[0]: block.strip() + "\n" for block in blocks if block.startswith("Host ")}


def merge(file: Path, new: dict[str, str], old: dict[str, str]) -> None:
    """Write new entries over old ones of the same name, if that changes the file."""
    if {**old, **new} != old or not file.exists():
        save(file, "".join({**old, **new}.values()))


def include(main: Path, own: Path) -> None:
    """Let ssh's configuration begin with a line that includes Berth's: below a `Host` it would count for that alone."""
    lines = lines_of(main)
    for_all = takewhile(lambda line: not re.match(r"(?i)\s*(host|match)\b", line), lines)
    if any(included(line) == own for line in for_all):
        return
    target = main.resolve()  # a link stays one
    save(target, "\n".join([f"Include {word(own)}", *lines]) + "\n")
    output.say(f"Added a line to {main}: ssh now knows your workspaces.")


def included(line: str) -> Path | None:
    """Return the file that a line includes. ssh looks for a relative one in ~/.ssh."""
    found = re.fullmatch(r"(?i)\s*include\s+(.+?)\s*", line)
    home = Path.home()
    return home / ".ssh" / re.sub("^~/", f"{home}/", found[1].strip('"')) if found else None


def run(program: str, arguments: Sequence[str]) -> NoReturn:
    """Become ssh or scp; its exit code is that of the command."""
    found = shutil.which(program)
    if found is None:
        raise Ended(
            Exit.ERROR, "no_ssh", f"There is no {program} on this machine.", "Install OpenSSH's client."
        )
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(found, [program, *arguments])  # noqa: S606
    raise typer.Exit(subprocess.call([found, *arguments]))


@keys.command("ls")
def list_keys(as_json: Json = False) -> None:
    """List your SSH keys."""
    with connect() as berth:
        found = list(berth.rows(calls.ssh_keys_list()))
    output.table(found, ("NAME", "FINGERPRINT"), ((one["name"], one["fingerprint"]) for one in found))


@keys.command()
def add(
    file: Annotated[
        Path, typer.Argument(help="A public key, as ~/.ssh/id_ed25519.pub", exists=True, dir_okay=False)
    ],
    name: Annotated[str, typer.Option(help="Name of the key; without: its comment.")] = "",
    as_json: Json = False,
) -> None:
    """Add a public key of this machine: with its private half, ssh opens your workspaces."""
    line = file.read_text(errors="replace").strip()
    if not PUBLIC_KEY.fullmatch(line):  # looked at here: a private key must not leave this machine
        raise usage(f"{file} is not a public key, so it was not sent.", "Name the file that ends in .pub.")
    words = line.split(maxsplit=2)
    with connect() as berth:
        added = berth.send(
            calls.ssh_keys_create(
                {"name": name or (words[2] if len(words) > 2 else file.stem), "public_key": line}
            )
        )
    output.show(added, f"Added {added['name']}. Running workspaces know it within two minutes.")
