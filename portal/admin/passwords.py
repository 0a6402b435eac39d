"""First passwords that Berth makes for people."""

from __future__ import annotations

import secrets
import string

LETTERS = string.ascii_letters.translate(str.maketrans("", "", "lIO")) + "23456789"


def new_password() -> str:
    """Return a random password of 100 bits, in groups that can be read out."""
    return "-".join("".join(secrets.choice(LETTERS) for _letter in range(6)) for _group in range(3))
