"""Addresses of pods and connections to them: on a network of each pod's own, or else on this machine's.

`kubelet/network/podnetwork` makes networks of their own. On this machine's network every pod has a loopback address,
taken at random, so that nobody can guess the next one and listen there first. Load balancers always have
loopback addresses.
"""

import asyncio
import ipaddress
import os
import random
from collections.abc import Awaitable, Callable, Container
from typing import Protocol

from devcluster.kubelet.network.outside import Outside, seen

LOOPBACK_PODS = ("127.16.0.0", 22)
"""127.16.0.0 up to 127.63.255.255, taken as 22 bits and a little more."""
BALANCERS = ("127.64.0.0", 20)
"""127.64.0.0/12."""
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[str, int], Awaitable[Streams]]
"""To a pod's address and port."""
Rules = Callable[[str], str | None]
"""From a pod's uid to what nft loads for it: an empty text for nothing, None if the pod is gone."""


class Addresses:
    def __init__(self, base: str, bits: int):
        self._base = int(ipaddress.ip_address(base))
        self._size = min(1 << bits, 48 << 16)
        self._random = random.SystemRandom()

    @property
    def size(self) -> int:
        """Number of addresses, without .0 and .255."""
        return self._size // 256 * 254

    def take(self, used: Container[str]) -> str:
        """Return an unused address that does not end in .0 or .255."""
        while True:
            place = self._random.randrange(self._size)
            address = str(ipaddress.ip_address(self._base + place))
            if place % 256 not in (0, 255) and address not in used:
                return address


class PodNetwork(Protocol):
    addresses: Addresses
    nameserver: str | None
    """Where it is not this machine's."""
    outside: Outside
    enforces: bool
    """Whether pods are held to the rules that NetworkPolicies give them."""
    rules: "Rules"

    async def connect(self, address: str, port: int) -> Streams:
        """Connect to a port of a pod."""

    async def join(self, pod_uid: str, address: str) -> list[str]:
        """Return the words before a command that make it run in the pod's network."""

    async def renew_rules(self) -> bool:
        """Load the rules of pods whose rules have changed. Return False if that failed for one of them."""

    def leave(self, pod_uid: str) -> None: ...

    async def close(self) -> None: ...


class SharedNetwork:
    """Network of this machine, shared by all pods."""

    nameserver: str | None = None
    enforces = False

    def __init__(self) -> None:
        self.rules: Rules = lambda pod_uid: ""
        self.addresses = Addresses(*LOOPBACK_PODS)
        self.outside = seen(os.environ)

    async def connect(self, address: str, port: int) -> Streams:
        return await asyncio.open_connection(address, port)

    async def join(self, pod_uid: str, address: str) -> list[str]:
        return []

    async def renew_rules(self) -> bool:
        return True

    def leave(self, pod_uid: str) -> None:
        pass

    async def close(self) -> None:
        pass
