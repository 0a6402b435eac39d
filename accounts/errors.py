"""What a use case says when it refuses: a code, one sentence, and what to do. Edges only translate it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class Refusal(Exception):
    """A request that is understood and not done. `status` is the HTTP status that means the same."""

    status = 400

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        *,
        fields: Mapping[str, Sequence[str]] | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.fields = {name: list(texts) for name, texts in (fields or {}).items()}
        self.retry_after_seconds = retry_after_seconds


class NotSignedIn(Refusal):
    status = 401


class NotAllowed(Refusal):
    """The person sees the thing but lacks the right."""

    status = 403


class NotThere(Refusal):
    """Does not exist, or belongs to a tenant that the person is not in: the two look the same."""

    status = 404


class Conflict(Refusal):
    status = 409


class Invalid(Refusal):
    """Well formed, but what it asks for cannot be: see `fields`."""

    status = 422


class TooMany(Refusal):
    status = 429


class NotYet(Refusal):
    """Part of the contract that is not built yet."""

    status = 501


# A page shows these where the person is; others are a page of their own.
SHOWN_IN_PLACE = (Conflict, Invalid, TooMany)
