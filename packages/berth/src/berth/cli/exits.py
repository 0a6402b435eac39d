"""Exit codes of `berth`, part of its contract (docs/cli.md), and the errors that end it."""

from __future__ import annotations

from enum import IntEnum

from berth.errors import BerthError, Refused, Unreachable


class Exit(IntEnum):
    ERROR = 1
    USAGE = 2  # Click's own
    REFUSED = 3
    NOT_SIGNED_IN = 4
    NOT_FOUND = 5
    UNREACHABLE = 6
    FAILED = 7
    TIMED_OUT = 8
    DIFFERENT = 9


class Ended(BerthError):
    """End of a command by something that is no refusal of Berth."""

    def __init__(self, exit_code: Exit, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.exit_code, self.code, self.message, self.hint = exit_code, code, message, hint


def usage(message: str, hint: str = "") -> Ended:
    return Ended(Exit.USAGE, "usage", message, hint)


def not_found(message: str, hint: str = "") -> Ended:
    return Ended(Exit.NOT_FOUND, "not_found", message, hint)


def exit_of(error: BerthError) -> Exit:
    match error:
        case Ended():
            return error.exit_code
        case Refused(status=401):
            return Exit.NOT_SIGNED_IN
        case Refused(status=404):
            return Exit.NOT_FOUND
        case Refused(status=status) if 400 <= status < 500:
            return Exit.REFUSED
        case Refused() | Unreachable():  # an error inside Berth, or an answer that is not its own
            return Exit.UNREACHABLE
    return Exit.ERROR
