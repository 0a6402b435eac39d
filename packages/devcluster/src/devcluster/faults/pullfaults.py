"""Faults of pulls: a delay, or an error, by a word for a message of containerd or a text of your own."""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from devcluster.errors import bad_request
from devcluster.faults.podfaults import SOCKET
from devcluster.faults.registry import Fault, Switch, number
from devcluster.fleet import RUNTIME_DOWN as NODE_RUNTIME_DOWN
from devcluster.fleet import Fleet

NOT_FOUND, NO_SPACE, RUNTIME_DOWN = "not-found", "no-space", "runtime-down"
_WORDS = {
    NOT_FOUND: "rpc error: code = NotFound desc = {failed}: failed to resolve image: {image}: not found",
    "unauthorized": "{failed}: failed to resolve image: pull access denied, repository does not exist or may require"
    " authorization: server message: insufficient_scope: authorization failed",
    "rate-limit": "{failed}: failed to copy: httpReadSeeker: failed open: unexpected status code"
    " https://{host}/v2/{name}/manifests/{tag}: 429 Too Many Requests - Server message: toomanyrequests: You have"
    " reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit",
    NO_SPACE: "{failed}: failed to copy: failed to send write: write"
    " /var/lib/containerd/io.containerd.content.v1.content/ingest/devcluster/data: no space left on device: unknown",
    "timeout": '{failed}: failed to resolve image: failed to do request: Head "https://{host}/v2/{name}/manifests/{tag}":'
    " dial tcp: i/o timeout",
    RUNTIME_DOWN: SOCKET,
}


@dataclass(frozen=True)
class Trouble:
    """Effect of faults on a pull: seconds of delay, and then an error unless it is empty."""

    seconds: float = 0
    error: str = ""


class PullFaults:
    def __init__(self, fleet: Fleet):
        self._fleet = fleet
        self._on: list[Fault] = []
        self.switch = Switch(("image",), frozenset({"error", "seconds"}), self._begin)

    def of(self, node: str, reference: str, image: str) -> Trouble:
        """Return the faults' effect on a pull. `image` is the reference as containerd spells it."""
        seconds, error = 0.0, ""
        for fault in self._on:
            if fnmatchcase(reference, fault.spec["image"]):
                fault.hits += 1
                seconds += fault.spec.get("seconds", 0)
                error = fault.spec.get("error") or error
        if not error and self._fleet.presses(node, "disk"):
            error = NO_SPACE
        return Trouble(seconds, words(error, image))

    def inspection(self, node: str, reference: str) -> str:
        """Return why the runtime cannot even check if the node has the image; empty if it can."""
        down = self._fleet.is_in(node, NODE_RUNTIME_DOWN)
        for fault in self._on:
            if fault.spec.get("error") == RUNTIME_DOWN and fnmatchcase(reference, fault.spec["image"]):
                fault.hits += 1
                down = True
        return SOCKET if down else ""

    def _begin(self, fault: Fault) -> Callable[[], object] | None:
        spec = fault.spec
        if not isinstance(spec["image"], str) or not isinstance(spec.get("error") or "", str):
            raise bad_request(
                "image is a reference or a pattern, error one of " + ", ".join(_WORDS) + " or a text"
            )
        number(spec, "seconds")
        if not spec.get("error") and not spec.get("seconds"):
            self._end_all(spec["image"])
            return None
        self._on.append(fault)
        return lambda: self._end(fault)

    def _end(self, fault: Fault) -> None:
        if fault in self._on:
            self._on.remove(fault)

    def _end_all(self, reference: str) -> None:
        """End all faults of this image, so that its pulls work again."""
        for fault in [f for f in self._on if f.spec["image"] == reference]:
            fault.released.set()
            self._on.remove(fault)


def words(error: str, image: str) -> str:
    """Return the message for an error's word, or the text itself."""
    repository, _, tag = image.rpartition(":")
    host, _, name = repository.partition("/")
    host = "registry-1.docker.io" if host == "docker.io" else host
    failed = f'failed to pull and unpack image "{image}"'
    return _WORDS.get(error, "{error}").format(
        error=error, failed=failed, image=image, host=host, name=name, tag=tag
    )
