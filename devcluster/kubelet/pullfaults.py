"""Faults of pulls: refused in a registry's or containerd's words, or slow."""

from collections.abc import Callable

from devcluster.errors import bad_request
from devcluster.faults import Fault, Switch


class PullFaults:
    """`errors` are what pulls end with, by reference."""

    def __init__(self) -> None:
        self.errors: dict[str, str] = {}
        self.switches = (Switch(("image",), frozenset({"error"}), self._begin),)

    def _begin(self, fault: Fault) -> Callable[[], object] | None:
        reference, error = fault.spec["image"], fault.spec.get("error")
        if error is None:
            self.errors.pop(reference, None)
            return None
        if not isinstance(error, str):
            raise bad_request("error is a text")
        self.errors[reference] = error
        return lambda: self.errors.pop(reference, None)
