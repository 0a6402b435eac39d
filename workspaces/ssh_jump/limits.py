"""Limits for one address before it has signed in, and for one person after, within this process."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import InterfaceError, OperationalError

from accounts.places import Places

LOGIN_SECONDS = 20
CONNECT_SECONDS = 5.0
AWAY = (OperationalError, InterfaceError)  # the database
KEYS_TRIED = 30  # an SSH agent offers all its keys
BYTES_BEFORE_LOGIN = 256 * 1024
STRANGERS = 300
STRANGERS_PER_ADDRESS = 10
CONNECTIONS_PER_PERSON = 64
TUNNELS_PER_PERSON = 256
TUNNELS_PER_CONNECTION = 64


@dataclass
class House:
    """Places that are taken in this process."""

    strangers: Places = field(default_factory=lambda: Places(STRANGERS_PER_ADDRESS, STRANGERS))
    connections: Places = field(default_factory=lambda: Places(CONNECTIONS_PER_PERSON))
    tunnels: Places = field(default_factory=lambda: Places(TUNNELS_PER_PERSON))
