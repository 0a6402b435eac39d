"""Refusals of use cases: a code, one sentence, and what to do. Pages and API only translate them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# More faulty fields are not named in an answer: a body may have thousands.
MOST_FAULTY_FIELDS = 20


class Refusal(Exception):
    """A request that is understood and not carried out. `status` is the matching HTTP status."""

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
    """The person sees the object but lacks the right."""

    status = 403


class NotThere(Refusal):
    """The object does not exist, or belongs to a tenant that the person is not in: both look the same."""

    status = 404


class Conflict(Refusal):
    status = 409


class Invalid(Refusal):
    """A well-formed request that cannot be fulfilled: see `fields`."""

    status = 422


class TooMany(Refusal):
    status = 429


# Shown on the page where the person is; other refusals get a page of their own.
SHOWN_IN_PLACE = (Conflict, Invalid, TooMany)
