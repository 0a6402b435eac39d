"""Pull of a container's image, or its copy on the node; pulls take time, fail, and are retried with growing pauses."""

import asyncio
from collections.abc import Callable

from devcluster.kubelet.containers.backoff import BackOff
from devcluster.kubelet.containers.images import CannotInspect, Images, InvalidName, PullError
from devcluster.kubelet.status import ContainerState
from devcluster.nodes import Image, Pauses

RESYNC_SECONDS = 10.0
"""How often what cannot work is tried all the same."""
BROKEN_SECONDS = 1.0
"""How long a failed pull shows before its pause does."""
Tell = Callable[[str, str, str], None]
"""Level, reason, message of an event."""


class Puller:
    def __init__(
        self,
        *,
        images: Images,
        node: str,
        reference: str,
        policy: str,
        pauses: Pauses,
        state: ContainerState,
        tell: Tell,
        changed: Callable[[], None],
    ):
        self._images, self._node, self._policy, self._pauses = images, node, policy, pauses
        self._reference = reference
        self._state, self._tell, self._changed = state, tell, changed

    async def image(self) -> Image:
        """Wait until the node has the image, and return it."""
        await self._named()
        await self._inspected()
        image = self._images.find(self._reference)
        present = image is not None and self._images.present(self._node, self._reference)
        if image and present and self._policy != "Always":
            words = "already present on machine and can be accessed by the pod"
            self._tell("Normal", "Pulled", f'Container image "{self._reference}" {words}')
            return image
        if self._policy == "Never":
            return await self._without_pull()
        return await self._pull()

    async def _named(self) -> None:
        while True:
            try:
                self._images.check(self._reference)
                return
            except InvalidName as error:
                why = f'couldn\'t parse image name "{self._reference}": invalid reference format{error}'
                message = f'Failed to apply default image tag "{self._reference}": {why}'
                self._tell("Warning", "InspectFailed", message)
                self._fail("InvalidImageName", message)
            await asyncio.sleep(RESYNC_SECONDS)

    async def _inspected(self) -> None:
        while True:
            try:
                self._images.inspect(self._node, self._reference)
                return
            except CannotInspect as error:
                message = f'Failed to inspect image "{self._reference}": {error}'
                self._tell("Warning", "InspectFailed", message)
                self._fail("ImageInspectError", message)
            await asyncio.sleep(BROKEN_SECONDS)

    async def _without_pull(self) -> Image:
        while True:
            image = self._images.find(self._reference)
            if image and self._images.present(self._node, self._reference):
                return image
            why = f'Container image "{self._reference}" is not present with pull policy of Never'
            self._tell("Warning", "ErrImageNeverPull", why)
            self._fail("ErrImageNeverPull", why)
            await asyncio.sleep(RESYNC_SECONDS)

    async def _pull(self) -> Image:
        back_off = BackOff(self._pauses)
        while True:
            self._tell("Normal", "Pulling", f'Pulling image "{self._reference}"')
            try:
                pulled = await self._images.pull(self._node, self._reference)
            except PullError as error:
                await self._back_off(str(error), back_off.next())
                continue
            took = f"{pulled.seconds:g}s"
            size = pulled.image.size_mib * 2**20
            self._tell(
                "Normal",
                "Pulled",
                f'Successfully pulled image "{self._reference}" in {took} ({took} including waiting).'
                f" Image size: {size} bytes.",
            )
            return pulled.image

    async def _back_off(self, why: str, pause: float) -> None:
        self._tell("Warning", "Failed", f'Failed to pull image "{self._reference}": {why}')
        self._fail("ErrImagePull", why)
        shown = min(BROKEN_SECONDS, pause)
        await asyncio.sleep(shown)
        self._tell("Normal", "BackOff", f'Back-off pulling image "{self._reference}"')
        self._fail("ImagePullBackOff", f'Back-off pulling image "{self._reference}": ErrImagePull: {why}')
        await asyncio.sleep(pause - shown)

    def _fail(self, reason: str, message: str) -> None:
        self._tell("Warning", "Failed", f"Error: {reason}")
        self._state.wait(reason, message)
        self._changed()
