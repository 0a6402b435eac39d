"""`python -m monitoring.agent`: settings from the environment; `--once` prints one look and ends.

| variable | what it says |
| --- | --- |
| `BERTH_AGENT_NODE` | this node's name in Kubernetes; the host's name without it |
| `BERTH_AGENT_POD` | this pod's name: the kubelet's answer counts once it names it |
| `BERTH_AGENT_PORTAL` | the portal's address; without it nothing is pushed |
| `BERTH_AGENT_TOKEN_FILE` | the file with the agents' token |
| `BERTH_AGENT_CA_FILE` | who signed the portal's certificate, if the system does not know them |
| `BERTH_AGENT_LISTEN` | where Prometheus asks, 127.0.0.1:9465; empty: nowhere |
| `BERTH_AGENT_INTERVAL_SECONDS` | between two looks, 5 |
| `BERTH_AGENT_KUBELET_SOCKET` | the kubelet's PodResources |
| `BERTH_AGENT_DEV`, `BERTH_AGENT_PROC` | where the device files and processes of the node are seen, /dev and /proc |
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from . import kubelet
from .look import Looker
from .running import Agent, Settings

ENDS = {signal.SIGTERM, signal.SIGINT}


def settings_from(variables: Mapping[str, str]) -> Settings:
    def told(name: str, otherwise: str = "") -> str:
        return variables.get(f"BERTH_AGENT_{name}", otherwise)

    host, _, port = told("LISTEN", "127.0.0.1:9465").rpartition(":")
    return Settings(
        node=told("NODE") or socket.gethostname(),
        interval_seconds=max(1.0, float(told("INTERVAL_SECONDS", "5"))),
        dev=Path(told("DEV", "/dev")),
        proc=Path(told("PROC", "/proc")),
        kubelet=Path(told("KUBELET_SOCKET", str(kubelet.SOCKET))),
        pod=told("POD"),
        portal=told("PORTAL"),
        token_file=Path(told("TOKEN_FILE", "/var/run/berth/token")),
        ca_file=told("CA_FILE") or None,
        listen=(host.strip("[]"), int(port)) if port else None,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m monitoring.agent", description=__doc__.splitlines()[0])
    parser.add_argument("--once", action="store_true", help="print one look as JSON, and end")
    once = parser.parse_args().once
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        settings = settings_from(os.environ)
        if once:
            look_once(settings)
            return
        agent = Agent(settings)
    except (ValueError, OSError) as error:
        sys.exit(f"The agent cannot begin with these settings: {error}")
    # Waited for, not handled: a handler could come where this thread holds a lock.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    agent.run(lambda seconds: signal.sigtimedwait(ENDS, seconds) is not None)
    # A thread may still hang in the driver: Python's own tidying up would go on beside it.
    logging.shutdown()
    os._exit(0)


def look_once(settings: Settings) -> None:
    looker = Looker(
        dev=settings.dev,
        proc=settings.proc,
        kubelet=settings.kubelet,
        pod=settings.pod,
        on_xid=lambda: None,
    )
    seen = looker.look()
    json.dump({"inventory": looker.inventory, "look": seen}, sys.stdout, indent=2)
    print()
    looker.close()


if __name__ == "__main__":
    main()
