"""Where requests come from: an address as itself, and who may count as one where attempts are counted."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address


def plain(address: str) -> str:
    """An IPv4 address that came over IPv6 as itself; without the zone of a link."""
    parsed = ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return str(mapped or parsed)


def neighbourhood(address: str) -> str:
    """Who may count as one: an IPv4 address, or what one customer is given of IPv6."""
    parsed = ip_address(address)
    return address if parsed.version == 4 else str(IPv6Address(int(parsed) >> 64 << 64))
