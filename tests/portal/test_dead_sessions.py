"""A machine that loses power closes no connection: both ends of a database session must notice."""

import re

import pytest
from django.db import connection


def settings_of(side: str) -> dict[str, int]:
    parameters = connection.get_connection_params()
    if side == "ours":
        return {name: parameters[f"keepalives_{name}"] for name in ("idle", "interval", "count")}
    return {
        name: int(value) for name, value in re.findall(r"tcp_keepalives_(\w+)=(\d+)", parameters["options"])
    }


@pytest.mark.django_db
@pytest.mark.parametrize("side", ["ours", "the database's"])
def test_what_a_vanished_machine_held_is_free_within_half_a_minute(side: str) -> None:
    found = settings_of(side)
    assert 0 < found["idle"] + found["interval"] * found["count"] <= 30
