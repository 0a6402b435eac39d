"""How NVML is asked: each answer is a value, "not offered" or a failure with a name, and nothing else ever comes out.

Three kinds of trouble, because they lead to different ends: what a GPU does not offer is left out; what it fails to say
is named beside the rest; and when NVML as a whole is over, the session is given up and begun anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import pynvml

Handle: TypeAlias = Any  # an opaque pointer of NVML's, good for one session
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
    """`error` is NVML's name of the reason, in small letters."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class NotOffered(Unanswered):
    """This GPU, or this driver, does not have it."""


class Failed(Unanswered):
    """It could not be said."""


class Over(Unanswered):
    """NVML answers nothing any more."""


def ask(function: Callable[..., Any], *arguments: Any) -> Any:
    """The answer of one call of pynvml's."""
    try:
        return function(*arguments)
    except pynvml.NVMLLibraryMismatchError:  # pynvml's own word for some functions that are not found
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
    """The answer of the newest call that this driver has."""
    *newer, oldest = calls
    for call in newer:
        try:
            return call()
        except NotOffered:
            continue
    return oldest()


def read(readings: Iterable[Reading], handle: Handle) -> tuple[dict[str, Any], dict[str, str]]:
    """What was answered, by field; and which readings failed, with NVML's name of the error."""
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
    """NVML may be broken by now: then there is nothing to end."""
    try:
        ask(pynvml.nvmlShutdown)
    except Unanswered:
        return
