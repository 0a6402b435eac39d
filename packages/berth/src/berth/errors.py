"""What can go wrong between a program and Berth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import httpx


class BerthError(Exception):
    """A request did not do what it should."""


class Unreachable(BerthError):
    """No answer from Berth, or one that asks to come back later than we are willing to wait."""


class NoAnswer(UserWarning):
    """A request is being sent again, and has been for some seconds."""


class OtherVersion(UserWarning):
    """The server is of another version than this package."""


class Refused(BerthError):
    """Berth refused a request. `code` never changes its meaning; `message` and `hint` are for people."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        hint: str = "",
        fields: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.hint = status, code, message, hint
        self.fields = dict(fields or {})


def refusal(response: httpx.Response) -> Refused:
    """Return the error in an answer; one that is not Berth's own, such as a proxy's, has the code `http_…`."""
    try:
        error = response.json()["error"]
        return Refused(
            response.status_code, error["code"], error["message"], error["hint"], error.get("fields")
        )
    except (ValueError, LookupError, TypeError):
        message = f"The answer of {response.url.host} is not Berth's: {response.status_code} {response.reason_phrase}."
        return Refused(
            response.status_code,
            f"http_{response.status_code}",
            message,
            "Check the address, and a proxy on the way.",
        )
