"""Reads pages as a person does."""

from __future__ import annotations

import re
from typing import Any


def words(response: Any) -> str:
    """What the page says, without its markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())).replace("\xa0", " ")
