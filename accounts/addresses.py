"""IP addresses: their plain form, their form in a URL, and the unit by which attempts are counted."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address


def plain(address: str) -> str:
    """Return an IPv4-mapped IPv6 address as IPv4, and any address without its link zone."""
    parsed = ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return str(mapped or parsed)


def neighbourhood(address: str) -> str:
    """Return what counts as one client: the IPv4 address, or the /64 that one customer gets of IPv6."""
    parsed = ip_address(address)
    return address if parsed.version == 4 else str(IPv6Address(int(parsed) >> 64 << 64))


def district(address: str) -> str:
    """Return what one network may have: the IPv4 address, or the /48 that one site gets of IPv6."""
    parsed = ip_address(address)
    return address if parsed.version == 4 else str(IPv6Address(int(parsed) >> 80 << 80))


def bracketed(host: str) -> str:
    """Return a host as part of a URL: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host
