"""Reads pages as a person does."""

from __future__ import annotations

import re
from typing import Any

from django.test import Client

from accounts.access import Actor


def browser(actor: Actor) -> Client:
    client = Client()
    client.force_login(actor.user)
    return client


def words(response: Any) -> str:
    """What the page says, without its markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())).replace("\xa0", " ")
