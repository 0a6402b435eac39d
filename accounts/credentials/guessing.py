"""Limits of guessing at passwords and codes. Pure: an attempt and the times of failures in, a moment out.

Nobody may shut another person out by guessing, and nobody may guess fast:

- tight: one account from one address (`PAIR`), the codes of one account (`CODES`);
- growing pauses, but no end: one account from all addresses (`ACCOUNT`), all accounts from one address (`ADDRESS`);
- tight: one name from all addresses, where the directory is asked (`DIRECTORY`). It may lock the account for good, in
  all that it is used for. So strangers do shut people out here, but only of this and only in new browsers.

A browser that signed in before, and a person who is signed in, are counted apart: strangers cannot use up their
attempts. No limit depends on whether the account exists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

WINDOW = timedelta(minutes=15)


@dataclass(frozen=True)
class Limit:
    """Number of failures that are free within WINDOW. Then each attempt waits twice as long as the one before."""

    free: int
    first_pause: timedelta = WINDOW
    longest_pause: timedelta = WINDOW

    @property
    def most(self) -> int:
        """Number of the latest failures that a decision needs: with more, the pause is the longest."""
        return self.free + (self.longest_pause // self.first_pause).bit_length()


PAIR = Limit(5)  # one person mistyping
CODES = Limit(10)  # many machines that know a person's password; that person must wait too
ACCOUNT = Limit(20, timedelta(seconds=1), timedelta(seconds=60))  # many machines trying one name
DIRECTORY = Limit(4)  # directories lock accounts after 5 wrong passwords or more
ADDRESS = Limit(100, timedelta(seconds=1), timedelta(seconds=30))  # one machine, or a whole campus behind it


@dataclass(frozen=True)
class Attempt:
    """An attempt and its limits. It holds the name's digest, as people type passwords into the field of the name."""

    name: str
    address: str | None
    by_name: Limit
    by_pair: Limit | None = None
    by_address: Limit | None = None


def at_password(username: str, address: str | None, device: str | None) -> Attempt:
    """Return an attempt at a name. `device`: the id of a browser in which this name signed in before."""
    if device is not None:
        return Attempt(_digest("device", device, username.casefold()), None, PAIR)
    by_address = ADDRESS if address else None
    return Attempt(digest(username), address, ACCOUNT, PAIR, by_address)


def at_directory(username: str) -> Attempt:
    """Return an attempt at a name in the directory by a browser in which it never signed in, from whatever address."""
    return Attempt(_digest("directory", username.casefold()), None, DIRECTORY)


def at_password_of_signed_in(user_id: UUID, address: str | None) -> Attempt:
    return Attempt(_digest("confirm", str(user_id)), address, PAIR)


def at_code(user_id: UUID, address: str | None) -> Attempt:
    """Return an attempt at the person's code, after the right password: counted by person, whatever the address."""
    return Attempt(_digest("code", str(user_id)), address, CODES)


def free_at(limit: Limit, failures: Sequence[datetime]) -> datetime | None:
    """Return the moment from which the next attempt is allowed; None if failures are free.

    `failures`: times of those within WINDOW, the latest first; `limit.most` of them are enough.
    """
    beyond = min(len(failures), limit.most) - limit.free
    if beyond < 0:
        return None
    pause = min(limit.first_pause * (1 << beyond), limit.longest_pause)
    return min(failures[0] + pause, failures[limit.free - 1] + WINDOW)


def digest(username: str) -> str:
    return hashlib.sha256(username.casefold().encode()).hexdigest()


def _digest(*parts: str) -> str:
    """Digest of what nobody can type as a name: a form refuses NUL."""
    return digest("\0" + "\0".join(parts))
