"""Addresses of git repositories. One that holds a password is a secret: rows and pod specs keep it without."""

from __future__ import annotations

import re

# Variable that the start script clones from; among the secrets of a workspace, if the address holds credentials.
VARIABLE = "BERTH_REPOSITORY"
CREDENTIALS = re.compile(r"(?P<scheme>[a-z]+://)(?P<user>[^/:@]*)[^/]*@", re.IGNORECASE)


def without_credentials(address: str) -> str:
    """Return a repository's address as others may see it. Over SSH a user's name alone is part of the address."""

    def rest(found: re.Match[str]) -> str:
        over_ssh = found["scheme"].lower() == "ssh://" and found["user"]
        return f"{found['scheme']}{found['user']}@" if over_ssh else found["scheme"]

    return CREDENTIALS.sub(rest, address)


def holds_credentials(address: str) -> bool:
    return without_credentials(address) != address


def as_secret(address: str) -> dict[str, str]:
    """Return the secret variable for an address that holds credentials; else nothing."""
    return {VARIABLE: address} if holds_credentials(address) else {}
