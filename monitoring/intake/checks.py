"""Check of a body against the agent's schema. An invalid body is refused in words that name the place. Pure.

The checks are made from the schema's own types, so that the two cannot differ. Unknown fields are dropped: a newer
agent may send more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import (
    Any,
    Literal,
    NoReturn,
    NotRequired,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from django.utils.translation import gettext as _

from accounts.errors import Refusal
from monitoring.agent.schema import VERSION, Batch, Head, Trouble

MOST_BYTES = 2 << 20
LONGEST_TEXT = 4096
LARGEST = 2**63

Reader = Callable[[Any, str], Any]


class Health(Head):
    """Problems only, from an agent that has no samples."""

    troubles: list[Trouble]


class TooLarge(Refusal):
    status = 413


def too_large() -> TooLarge:
    return TooLarge(
        "too_large",
        _("The request is too large: at most %(mebibytes)d MiB are accepted.")
        % {"mebibytes": MOST_BYTES >> 20},
        _("Send fewer reports in one request."),
    )


def batch(body: bytes) -> Batch:
    return cast(Batch, _BATCH(_parsed(body), ""))


def health(body: bytes) -> Health:
    return cast(Health, _HEALTH(_parsed(body), ""))


def _parsed(body: bytes) -> Any:
    if len(body) > MOST_BYTES:
        raise too_large()
    try:
        parsed = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Refusal("not_json", _("The body is not valid JSON."), _("Send one JSON object.")) from None
    if isinstance(parsed, dict) and parsed.get("version") != VERSION:
        problem = _("This Berth supports version %(version)d.") % {"version": VERSION}
        raise Refusal(
            "version_unknown",
            _("This Berth does not support the agent's version."),
            _("Run an agent of the same release as Berth."),
            fields={"version": [problem]},
        )
    return parsed


def _no_number(_constant: str) -> NoReturn:
    raise ValueError


# --- Readers, one for each type of the schema: they return the value without unknown fields


def _reader(kind: Any) -> Reader:
    if is_typeddict(kind):
        return _fields(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is list:
        return _list(_reader(inner[0]))
    if origin is dict:
        return _dict(_reader(inner[1]))
    if origin is Literal:
        return _one_of(inner)
    return {str: _text, int: _whole, float: _number, bool: _yes_or_no}[kind]


def _fields(kind: Any) -> Reader:
    hints = get_type_hints(kind, include_extras=True)
    optional = {name for name, hint in hints.items() if get_origin(hint) is NotRequired}
    readers = {name: _reader(get_args(hint)[0] if name in optional else hint) for name, hint in hints.items()}
    required = readers.keys() - optional

    def read(value: Any, at: str) -> Any:
        if not isinstance(value, dict):
            _refuse(at, _("This must be an object."))
        if missing := required - value.keys():
            _refuse(f"{at}{min(missing)}", _("This is missing."))
        return {
            name: reader(value[name], f"{at}{name}.") for name, reader in readers.items() if name in value
        }

    return read


def _list(each: Reader) -> Reader:
    def read(value: Any, at: str) -> Any:
        if not isinstance(value, list):
            _refuse(at, _("This must be a list."))
        return [each(entry, f"{at}{index}.") for index, entry in enumerate(value)]

    return read


def _dict(each: Reader) -> Reader:
    def read(value: Any, at: str) -> Any:
        if not isinstance(value, dict):
            _refuse(at, _("This must be an object."))
        return {_text(name, at): each(entry, f"{at}{name}.") for name, entry in value.items()}

    return read


def _one_of(choices: tuple[Any, ...]) -> Reader:
    def read(value: Any, at: str) -> Any:
        if value not in choices:
            _refuse(at, _("Choose one of: %(names)s.") % {"names": ", ".join(choices)})
        return value

    return read


def _text(value: Any, at: str) -> Any:
    """Return text that PostgreSQL can store: no NUL, no lone surrogate. Refuse anything else."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or "\0" in value or not _is_whole(value):
        _refuse(at, _("This must be text of at most %(count)d characters.") % {"count": LONGEST_TEXT})
    return value


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _whole(value: Any, at: str) -> Any:
    if type(value) is not int or not -LARGEST <= value < LARGEST:
        _refuse(at, _("This must be a whole number."))
    return value


def _number(value: Any, at: str) -> Any:
    if type(value) not in (int, float) or not abs(value) < LARGEST:  # not true of NaN either
        _refuse(at, _("This must be a number."))
    return value


def _yes_or_no(value: Any, at: str) -> Any:
    if type(value) is not bool:
        _refuse(at, _("This must be true or false."))
    return value


def _refuse(at: str, problem: str) -> NoReturn:
    place = at.rstrip(".") or "non_field_errors"
    raise Refusal(
        "invalid",
        _("Some of what you sent is not valid."),
        _("See “fields” for what to change."),
        fields={place[:200]: [problem]},
    )


_BATCH, _HEALTH = _reader(Batch), _reader(Health)
