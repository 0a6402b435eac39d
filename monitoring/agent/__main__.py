"""`python -m monitoring.agent`: settings from the environment; `--once` prints one look and ends.

| variable | meaning |
| --- | --- |
| `BERTH_AGENT_NODE` | this node's name in Kubernetes; default: the host name |
| `BERTH_AGENT_POD` | this pod's name: the kubelet's answer counts only if it names this pod |
| `BERTH_AGENT_PORTAL` | the portal's address; empty: nothing is pushed |
| `BERTH_AGENT_TOKEN_FILE` | the file with the agents' token |
| `BERTH_AGENT_CA_FILE` | the CA of the portal's certificate, beside those that the system trusts; may be absent |
| `BERTH_AGENT_LISTEN` | the address for Prometheus, 127.0.0.1:9465; empty: none |
| `BERTH_AGENT_INTERVAL_SECONDS` | seconds between two looks, 5 |
| `BERTH_AGENT_KUBELET_SOCKET` | the kubelet's PodResources socket |
| `BERTH_AGENT_KUBELET_IP` | this node's address: its kubelet is asked how full volumes are; empty: it is not |
| `BERTH_AGENT_KUBELET_TOKEN_FILE` | the file with a token of Kubernetes that may `get` `nodes/stats` |
| `BERTH_AGENT_CGROUPS` | where the node's cgroups are mounted, /host/sys/fs/cgroup: they count what the kernel ended |
| `BERTH_AGENT_DEV`, `BERTH_AGENT_PROC` | where the node's device files and processes are mounted, /dev and /proc |
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
from .cgroups import FOLDER, OomCounts
from .look import Looker
from .running import Agent, Settings
from .volumes import TOKEN_FILE, VolumeUses

ENDS = {signal.SIGTERM, signal.SIGINT}


def settings_from(variables: Mapping[str, str]) -> Settings:
    def value(name: str, otherwise: str = "") -> str:
        return variables.get(f"BERTH_AGENT_{name}", otherwise)

    host, _, port = value("LISTEN", "127.0.0.1:9465").rpartition(":")
    return Settings(
        node=value("NODE") or socket.gethostname(),
        interval_seconds=max(1.0, float(value("INTERVAL_SECONDS", "5"))),
        dev=Path(value("DEV", "/dev")),
        proc=Path(value("PROC", "/proc")),
        kubelet=Path(value("KUBELET_SOCKET", str(kubelet.SOCKET))),
        pod=value("POD"),
        portal=value("PORTAL"),
        token_file=Path(value("TOKEN_FILE", "/var/run/berth/token")),
        ca_file=Path(value("CA_FILE")) if value("CA_FILE") else None,
        listen=(host.strip("[]"), int(port)) if port else None,
        kubelet_ip=value("KUBELET_IP"),
        kubelet_token_file=Path(value("KUBELET_TOKEN_FILE", str(TOKEN_FILE))),
        cgroups=Path(value("CGROUPS", str(FOLDER))),
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
    # Wait for the signals, without a handler: a handler could run while this thread holds a lock.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    agent.run(lambda seconds: signal.sigtimedwait(ENDS, seconds) is not None)
    # Skip Python's own shutdown: a thread may still hang in the driver and would run on beside it.
    logging.shutdown()
    os._exit(0)


def look_once(settings: Settings) -> None:
    uses = VolumeUses(settings.kubelet_ip, settings.kubelet_token_file)
    places = settings.dev, settings.proc, settings.kubelet
    looker = Looker(*places, settings.pod, volumes=uses.due, oom_kills=OomCounts(settings.cgroups).news)
    seen = looker.look()
    json.dump({"inventory": looker.inventory, "look": seen}, sys.stdout, indent=2)
    print()
    looker.close()


if __name__ == "__main__":
    main()
