"""Short requests to the program in the pod. What streams goes through `door`."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlencode

from accounts.credentials.secrets import decrypt
from storage.models import FilesSession

from .answers import away, refusal

SECONDS = 20.0
MOST_BYTES = 4 * 2**20  # far above any list


def ask(session: FilesSession, method: str, what: str, **query: str) -> tuple[int, dict[str, Any]]:
    """Return status and facts of a success. Raise a Refusal otherwise."""
    connection = HTTPConnection(session.host, timeout=SECONDS)
    try:
        connection.request(method, address(what, query), headers=headers(session))
        answer = connection.getresponse()
        facts = json.loads(answer.read(MOST_BYTES))
    except (OSError, HTTPException, ValueError):
        raise away() from None
    finally:
        connection.close()
    if answer.status >= 300:
        raise refusal(answer.status, facts)
    return answer.status, facts


def address(what: str, query: dict[str, str]) -> str:
    return f"{what}?{urlencode(query)}"


def headers(session: FilesSession) -> dict[str, str]:
    return {"Authorization": f"Bearer {decrypt(session.token)}"}
