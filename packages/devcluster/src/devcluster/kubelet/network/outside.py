"""Settings that pods need to reach the world as this machine does: its proxies and pip's index. Pure.

Services on this machine's loopback are reached by the gateway of the pods' network, which forwards to them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_NOT_PROXIED, _TRUSTED = ("NO_PROXY", "no_proxy"), "PIP_TRUSTED_HOST"
_NAMES = (*_PROXIES, *(n.lower() for n in _PROXIES), "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
_LOOPBACK = re.compile(r"(^|//|@)(?:localhost|127\.[\d.]+|\[::1\]):(\d+)")
_PIP = Path("/etc/pip.conf")


@dataclass(frozen=True)
class Outside:
    """Environment variables and files of /etc for a pod, and the loopback ports of this machine that they name."""

    environment: Mapping[str, str]
    files: Mapping[str, str]
    ports: frozenset[int] = frozenset()


def seen(environ: Mapping[str, str], pip: Path = _PIP) -> Outside:
    """Return the settings of this machine itself."""
    found = {name: environ[name] for name in (*_NAMES, *_NOT_PROXIED, _TRUSTED) if environ.get(name)}
    try:
        return Outside(found, {str(_PIP): pip.read_text()})
    except OSError:
        return Outside(found, {})


def through(gateway: str, network: str, own: Outside) -> Outside:
    """Return the settings for the pods' network: loopback by the gateway, and near addresses without a proxy."""
    ports: set[int] = set()

    def translated(text: str) -> str:
        ports.update(int(port) for _, port in _LOOPBACK.findall(text))
        return _LOOPBACK.sub(rf"\g<1>{gateway}:\g<2>", text)

    found = {name: translated(value) for name, value in own.environment.items() if name in _NAMES}
    files = {path: translated(text) for path, text in own.files.items()}
    if any(name.upper() in _PROXIES for name in found):
        near = f"localhost,127.0.0.1,{network}"
        found |= {name: ",".join(filter(None, [own.environment.get(name), near])) for name in _NOT_PROXIED}
    if trusted := own.environment.get(_TRUSTED, ""):
        found[_TRUSTED] = trusted
    if ports:  # pip trusts loopback without a certificate, so it must trust the gateway too
        found[_TRUSTED] = f"{trusted} {gateway}".strip()
    return Outside(found, files, frozenset(ports))
