"""Loopback addresses: every pod and every load balancer has one of its own in 127.0.0.0/8.

Taken at random: several clusters may run on one machine, and a pod shares this machine's network, so that nobody
may tell which address comes next and lie in wait there.
"""

import ipaddress
import random
from collections.abc import Container

PODS = ("127.16.0.0", 22)
"""127.16.0.0 up to 127.63.255.255, taken as 22 bits and a little more."""
BALANCERS = ("127.64.0.0", 20)
"""127.64.0.0/12."""


class Addresses:
    def __init__(self, base: str, bits: int):
        self._base = int(ipaddress.ip_address(base))
        self._size = min(1 << bits, 48 << 16)
        self._random = random.SystemRandom()

    def take(self, used: Container[str]) -> str:
        """One that is not used; .0 and .255 are left out."""
        while True:
            place = self._random.randrange(self._size)
            address = str(ipaddress.ip_address(self._base + place))
            if place % 256 not in (0, 255) and address not in used:
                return address
