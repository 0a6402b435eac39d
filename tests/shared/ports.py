"""Ports of this machine, and the client of an API server at one."""

from __future__ import annotations

import socket

from kubernetes.client import ApiClient, Configuration

from clusters.api import Api
from clusters.transport import Transport


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def api_at(port: int) -> Api:
    configuration = Configuration(host=f"http://127.0.0.1:{port}")
    configuration.retries = False
    configuration.api_key = {"BearerToken": "Bearer very-secret-token"}
    return Api(Transport(ApiClient(configuration)))
