"""Use of the PVCs that pods of this node mount, from the kubelet's figures: its `/stats/summary`.

The kubelet asks the storage's driver about once a minute. It lets in who may `get` `nodes/stats`; reading the mounts
themselves would need the folder of all pods, with the secrets in it.
"""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .inventory import MIB
from .schema import VolumeUse

logger = logging.getLogger("monitoring.agent")

PORT = 10250
EVERY_SECONDS = 60
TIMEOUT_SECONDS = 3
LONGEST_BYTES = 16 * MIB
TOKEN_FILE = Path("/run/kubelet/token")


class VolumeUses:
    """Figures of this node's kubelet. `address` empty: nobody is asked."""

    def __init__(self, address: str, token_file: Path, port: int = PORT) -> None:
        self._address, self._token_file, self._port = address, token_file, port
        self._next = 0.0
        self._failure = ""

    def due(self) -> list[VolumeUse] | None:
        """Return the use of volumes if it is time to ask and the kubelet answers, else None."""
        if not self._address or time.monotonic() < self._next:
            return None
        self._next = time.monotonic() + EVERY_SECONDS
        found, failure = None, ""
        try:
            found = read_summary(self._ask())
        except (
            OSError,
            http.client.HTTPException,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
        ) as error:
            failure = f"{type(error).__name__}: {error}"
        if failure and failure != self._failure:
            logger.warning("The kubelet does not say how full volumes are: %s", failure)
        self._failure = failure
        return found

    def _ask(self) -> Any:
        # A kubelet's certificate is mostly signed by itself. The connection stays on this node, and the token reads
        # figures alone.
        context = ssl._create_unverified_context()  # noqa: S323
        connection = http.client.HTTPSConnection(
            self._address, self._port, timeout=TIMEOUT_SECONDS, context=context
        )
        try:
            token = self._token_file.read_text().strip()
            connection.request("GET", "/stats/summary", headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise ValueError(f"HTTP {answer.status}")
            return json.loads(answer.read(LONGEST_BYTES))
        finally:
            connection.close()


def read_summary(summary: Mapping[str, Any]) -> list[VolumeUse]:
    """Return each PVC once, though several pods may mount it."""
    found: dict[tuple[str, str], VolumeUse] = {}
    for pod in summary["pods"]:
        for volume in pod.get("volume") or ():
            ref = volume.get("pvcRef")
            if ref and {"usedBytes", "capacityBytes"} <= volume.keys():
                namespace, claim = str(ref["namespace"]), str(ref["name"])
                found[namespace, claim] = {
                    "namespace": namespace,
                    "claim": claim,
                    "used_mib": int(volume["usedBytes"]) // MIB,
                    "capacity_mib": int(volume["capacityBytes"]) // MIB,
                }
    return list(found.values())
