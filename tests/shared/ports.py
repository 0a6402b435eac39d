"""Free ports of this machine, for servers that tests start."""

import random
import socket

# Below the ports that Linux gives to clients, and below node ports: nobody takes one before its server starts.
PORTS = range(20_000, 30_000)


def free_port() -> int:
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
