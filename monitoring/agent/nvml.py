"""Calls of NVML. The outcome is a value, or one of three exceptions with NVML's name of the error.

The exceptions differ because callers treat them differently. NotOffered: the field is left out. Failed: the failure is
named beside the other values. Over: NVML as a whole has ended, so the session is closed and a new one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeAlias

import pynvml

Handle: TypeAlias = Any  # an opaque pointer of NVML, valid for one session
Reading = Callable[[Handle], dict[str, Any]]

_NOT_OFFERED = {
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,  # an older driver
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    pynvml.NVML_ERROR_DEPRECATED,
    pynvml.NVML_ERROR_VGPU_ECC_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_DATA,
    pynvml.NVML_ERROR_NOT_FOUND,
    pynvml.NVML_ERROR_NOT_READY,
}
_OVER = {
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
}
_NAMES = {
    value: name.removeprefix("NVML_ERROR_").lower()
    for name, value in vars(pynvml).items()
    if name.startswith("NVML_ERROR_")
} | {pynvml.NVML_SUCCESS: "success"}


class Unanswered(Exception):
    """NVML did not answer. `error` is NVML's name of the reason, in lower case."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class NotOffered(Unanswered):
    """Value that this GPU or this driver does not have."""


class Failed(Unanswered):
    """NVML should have the value, but could not read it."""


class Over(Unanswered):
    """NVML does not answer any call any more."""


def ask(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the answer of one pynvml call. Raise a subclass of Unanswered if there is none."""
    try:
        return function(*arguments)
    except pynvml.NVMLLibraryMismatchError:  # raised by pynvml itself for some functions that are not found
        raise NotOffered("function_not_found") from None
    except pynvml.NVMLError as error:
        raise _kind(error.value) from None
    except UnicodeDecodeError:
        raise Failed("unreadable_answer") from None


def _kind(value: int) -> Unanswered:
    name = _NAMES.get(value, f"error_{value}")
    if value in _NOT_OFFERED:
        return NotOffered(name)
    return Over(name) if value in _OVER else Failed(name)


def first_offered(*calls: Callable[[], Any]) -> Any:
    """Return the answer of the newest call that this driver has."""
    *newer, oldest = calls
    for call in newer:
        try:
            return call()
        except NotOffered:
            continue
    return oldest()


def read(readings: Iterable[Reading], handle: Handle) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the answered values by field, and NVML's error by failed reading."""
    values: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for reading in readings:
        try:
            values |= reading(handle)
        except NotOffered:
            continue
        except Failed as failure:
            failed[reading.__name__] = failure.error
    return values, failed


def begin() -> None:
    ask(pynvml.nvmlInit)


def end() -> None:
    """End the session. NVML may be broken already: then there is nothing to end."""
    with suppress(Unanswered):
        ask(pynvml.nvmlShutdown)
