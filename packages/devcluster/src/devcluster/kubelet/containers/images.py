"""Image pulls: a reference in the node file's table takes its time, or fails as with a registry."""

import asyncio
import hashlib
import re
from dataclasses import dataclass

from devcluster.faults.pullfaults import NOT_FOUND, PullFaults, words
from devcluster.nodes import Image
from devcluster.resources import Obj

_REFERENCE = re.compile(
    r"^(?:[a-zA-Z0-9.-]+(?::[0-9]+)?/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
    r"(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::[\w][\w.-]{0,127})?(?:@sha256:[a-f0-9]{64})?$"
)

_BEGUN = (
    "devcluster: simulated, no GPU was used",
    "[Vector addition of 50000 elements]",
    "Copy input data from the host memory to the CUDA device",
    "CUDA kernel launch with 196 blocks of 256 threads",
)
BUILT_IN = {
    "devcluster.local/simulated-vectoradd:passes": Image(
        size_mib=1,
        says=(
            *_BEGUN,
            "Copy output data from the CUDA device to the host memory",
            "Test PASSED",
            "Done",
        ),
    ),
    "devcluster.local/simulated-vectoradd:fails": Image(
        size_mib=1,
        says=(
            *_BEGUN,
            "Failed to launch vectorAdd kernel (error code uncorrectable ECC error encountered)!",
        ),
        exits=1,
    ),
}
"""A test of a GPU in the words of NVIDIA's sample, without one: known to every node, whatever its table says."""


class PullError(Exception):
    pass


class CannotInspect(Exception):
    """Failure of the runtime to answer."""


class InvalidName(Exception):
    """Invalid reference; the text is the rest of the parser's message, with its colon."""


@dataclass(frozen=True)
class Pulled:
    image: Image
    seconds: float
    """0 where the node had it."""


class Images:
    """Images of all nodes. With a table of None every reference can be pulled."""

    def __init__(self, table: dict[str, Image] | None, faults: PullFaults):
        self._table, self._faults = table, faults
        self._present: dict[str, set[str]] = {}

    def present(self, node: str, reference: str) -> bool:
        return reference in self._present.get(node, ())

    def on(self, node: str) -> list[Obj]:
        """Return the node's images, as its status lists them."""
        found = []
        for reference in sorted(self._present.get(node, ())):
            image = self.find(reference) or Image()
            found.append({"names": [normalized(reference)], "sizeBytes": image.size_mib * 2**20})
        return found

    def inspect(self, node: str, reference: str) -> None:
        if why := self._faults.inspection(node, reference):
            raise CannotInspect(why)

    @staticmethod
    def check(reference: str) -> None:
        if _REFERENCE.match(reference):
            return
        name = normalized(reference).rpartition(":")[0].partition("/")[2]
        lower = _REFERENCE.match(reference.lower())
        raise InvalidName(f": repository name ({name}) must be lowercase" if lower else "")

    def find(self, reference: str) -> Image | None:
        if self._table is None:
            return BUILT_IN.get(reference, Image())
        return self._table.get(reference) or BUILT_IN.get(reference)

    async def pull(self, node: str, reference: str) -> Pulled:
        full = normalized(reference)
        trouble = self._faults.of(node, reference, full)
        image = self.find(reference)
        seconds = trouble.seconds + (image.pull_seconds if image else 0)
        await asyncio.sleep(seconds)
        if error := trouble.error or ("" if image else words(NOT_FOUND, full)):
            raise PullError(error)
        self._present.setdefault(node, set()).add(reference)
        return Pulled(image or Image(), seconds)


def image_id(reference: str) -> str:
    """Return the id of an image's configuration in containerd's form."""
    return f"sha256:{hashlib.sha256(normalized(reference).encode()).hexdigest()}"


def normalized(reference: str) -> str:
    """Return the reference as containerd spells it."""
    first, _, rest = reference.partition("/")
    name = reference
    if not rest:
        name = f"docker.io/library/{reference}"
    elif "." not in first and ":" not in first and first != "localhost":
        name = f"docker.io/{reference}"
    tail = name.rpartition("/")[2]
    return name if ":" in tail or "@" in tail else f"{name}:latest"
