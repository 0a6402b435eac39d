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
from berth.clients import answer_of, is_json

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
    with connect() as berth, berth.stream(call) as answer:
        if not is_json(answer):
            for piece in answer.iter_bytes():  # an archive may be larger than the memory
                sys.stdout.buffer.write(piece)
        elif answer.read():
            output.print_json(answer_of(call, answer))
    sys.stdout.flush()


def parsed(body: str | None) -> Any:
    if body is None:
        return None
    try:
        return json.loads(sys.stdin.read() if body == "-" else body)
    except ValueError as problem:
        raise usage(f"The body is not valid JSON: {problem}") from None
