"""Client of Berth's REST API, and the command `berth` (`berth.cli`).

`berth.api.calls` has a function for each operation of the API, and `berth.api.shapes` the types of what it takes and
answers; both are written from the OpenAPI schema. A `Client` sends calls, an `AsyncClient` does the same in asyncio:

    from berth import Client
    from berth.api import calls

    with Client("https://berth.example", token) as berth:
        workspace = berth.send(calls.workspaces_create({"tenant": "demo", "name": "exp-1", ...}))
        for job in berth.rows(calls.jobs_list(phase=["failed"])):
            print(job["name"])
"""

from berth.clients import AsyncClient, Client
from berth.errors import BerthError, NoAnswer, OtherVersion, Refused, Unreachable
from berth.version import VERSION

__all__ = [
    "VERSION",
    "AsyncClient",
    "BerthError",
    "Client",
    "NoAnswer",
    "OtherVersion",
    "Refused",
    "Unreachable",
]
