"""Settings with which Berth does not start outside a trial."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network

from django.core.checks.security.base import (
    SECRET_KEY_INSECURE_PREFIX,
    SECRET_KEY_MIN_LENGTH,
    SECRET_KEY_MIN_UNIQUE_CHARACTERS,
)
from django.core.exceptions import ImproperlyConfigured

# Widest network of proxies whose X-Forwarded-For is believed: a cluster's own, at most.
WIDEST_V4, WIDEST_V6 = 16, 64
# Characters of a token that somebody chose by hand.
SHORTEST_TOKEN = 24


def unsafe(*, secret_key: str, base_url: str, proxies: str) -> str:
    """Return what to set before Berth may start; empty if all is well. `proxies`: FORWARDED_ALLOW_IPS of uvicorn."""
    if (
        len(secret_key) < SECRET_KEY_MIN_LENGTH
        or len(set(secret_key)) < SECRET_KEY_MIN_UNIQUE_CHARACTERS
        or secret_key.startswith(SECRET_KEY_INSECURE_PREFIX)
    ):
        return (
            f"BERTH_SECRET_KEY is too weak: it signs sessions and encrypts secrets. Set at least "
            f"{SECRET_KEY_MIN_LENGTH} random characters: head -c 48 /dev/urandom | base64"
        )
    if not base_url:
        return (
            "BERTH_BASE_URL is missing. Set the address by which people reach Berth, as https://berth.example"
        )
    for proxy in filter(None, (text.strip() for text in proxies.split(","))):
        if _too_wide(proxy):
            return (
                f"FORWARDED_ALLOW_IPS names {proxy}: anybody in there could pretend to have any address. Set the "
                f"addresses of your proxies, or a network of at most /{WIDEST_V4} (IPv6: /{WIDEST_V6})."
            )
    return ""


def metrics_token(token: str) -> str:
    """Return the token for /metrics. Raise ImproperlyConfigured if it could be guessed."""
    if token and len(token) < SHORTEST_TOKEN:
        raise ImproperlyConfigured(
            f"BERTH_METRICS_TOKEN must have at least {SHORTEST_TOKEN} random characters: openssl rand -hex 24"
        )
    return token


def _too_wide(proxy: str) -> bool:
    try:
        network = ip_network(proxy, strict=False)
    except ValueError:  # a name of a socket, or everybody
        return proxy == "*"
    return network.prefixlen < (WIDEST_V4 if isinstance(network, IPv4Network) else WIDEST_V6)
