"""Loopback addresses: every pod and every load balancer has one of its own in 127.0.0.0/8.

Several clusters may run on one machine, so each begins at a place of its own within its range.
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
        self._next = random.randrange(self._size)

    def take(self, used: Container[str]) -> str:
        """The next address that is not used; .0 and .255 are left out."""
        while True:
            self._next = (self._next + 1) % self._size
            address = str(ipaddress.ip_address(self._base + self._next))
            if self._next % 256 not in (0, 255) and address not in used:
                return address
