"""Tests that a taken port is reported with the process that holds it and what to do."""

import os
import socket
from collections.abc import Iterator

import pytest

from portal.up import ports
from portal.up.refusal import Refusal


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


def test_a_taken_port_is_named_with_its_holder_and_a_way_out(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with pytest.raises(Refusal) as refused:
        ports.require_web_port(port)
    assert f"Port {port} is taken" in str(refused.value)
    assert f"(pid {os.getpid()})" in str(refused.value)
    assert f"PORT={port + 1} make up" in str(refused.value)


def test_a_port_on_one_address_is_free_on_another(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    assert not ports.is_free("127.0.0.1", port)
    assert ports.is_free(ports.PROBE, port)


def test_a_wildcard_listener_takes_the_port_on_every_address() -> None:
    with socket.socket() as server:
        server.bind(("0.0.0.0", 0))
        server.listen()
        assert not ports.is_free(ports.PROBE, server.getsockname()[1])


def test_ssh_moves_to_2222_where_22_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda address, port: port != 22)
    assert ports.ssh_service_port() == 2222
    monkeypatch.setattr(ports, "is_free", lambda address, port: True)
    assert ports.ssh_service_port() == 22


def test_a_port_of_last_time_is_kept_while_it_is_free(listener: socket.socket) -> None:
    taken = listener.getsockname()[1]
    assert ports.keep_or_choose(str(taken)) != taken
    listener.close()
    assert ports.keep_or_choose(str(taken)) == taken
