"""The command for everything that has none of its own: any request of the API."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from berth.api.call import Call
from berth.cli import output
from berth.cli.exits import usage
from berth.cli.output import Json
from berth.cli.sites import connect

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def api(
    method: Annotated[str, typer.Argument(help=" | ".join(METHODS), show_default=False)],
    path: Annotated[
        str, typer.Argument(help="Below /api/v1/, with its query: pools/?search=a100", show_default=False)
    ],
    body: Annotated[
        str | None, typer.Argument(help="JSON; - for standard input.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Send any request of the API, and print the answer: /api/docs/ lists them."""
    if method.upper() not in METHODS:
        raise usage(f"Unknown method “{method}”: {' | '.join(METHODS)}")
    path = path.removeprefix("/api/v1/")
    if path.startswith("/") or "://" in path:
        raise usage(f"“{path}” is not below /api/v1/.", "Say pools/, without the address.")
    call: Call[Any] = Call(method.upper(), path, body=parsed(body))
    with connect() as berth:
        answer = berth.send(call)
    if isinstance(answer, str):
        typer.echo(answer, nl=False)
    elif isinstance(answer, bytes):
        sys.stdout.buffer.write(answer)
    elif answer is not None:
        output.print_json(answer)


def parsed(body: str | None) -> Any:
    if body is None:
        return None
    try:
        return json.loads(sys.stdin.read() if body == "-" else body)
    except ValueError as problem:
        raise usage(f"The body is not valid JSON: {problem}") from None
